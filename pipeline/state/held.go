package state

import (
	"context"

	"rehydrate/pipeline/workspace"
)

// Held returns how many images the workspace holds, whatever became of their entries.
func Held(ctx context.Context, ws *workspace.Workspace) (images int, err error) {
	for rec, err := range ws.Records(ctx, workspace.Select{Bare: true}) {
		if err != nil {
			return 0, err
		}
		if rec.Image != nil {
			images++
		}
	}
	return images, nil
}
