package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"rehydrate/internal/durable"
	"rehydrate/internal/page"
	"rehydrate/internal/userfile"
	"rehydrate/manifest"
	"rehydrate/pipeline/state"
	"rehydrate/pipeline/workspace"
	"rehydrate/policy"
)

func (c *command) tombstonesCommand() *cobra.Command {
	return newGroup("tombstones", c.tombstonesShowCommand(), c.tombstonesExportCommand(), c.tombstonesLiftCommand())
}

func (c *command) tombstonesShowCommand() *cobra.Command {
	return c.workspaceCommand("tombstones-show", noArgs, func(cmd *cobra.Command, _ []string) error {
		list, err := c.listTombstones(cmd.Context(), func(altered error) error {
			c.log.Warn(altered.Error())
			return nil
		})
		if err != nil {
			return err
		}
		return c.answer("tombstones", stonesAnswer{list})
	})
}

// listTombstones lists the tombstones of the workspace; unless altered takes the error for it, not beside a
// tombstones.csv that no command left as it is.
func (c *command) listTombstones(ctx context.Context, altered func(error) error) ([]state.TombstoneEntry, error) {
	return reading(ctx, c, func(ws *workspace.Workspace) ([]state.TombstoneEntry, error) {
		if err := ws.CheckCurrent(ctx); err != nil {
			return nil, err
		}
		err := state.CheckTombstones(ctx, ws)
		if is[*workspace.Altered](err) {
			err = altered(err)
		}
		if err != nil {
			return nil, err
		}
		return state.ListTombstones(ctx, ws, nil, c.now())
	})
}

func (c *command) tombstonesExportCommand() *cobra.Command {
	var out string
	cmd := c.workspaceCommand("tombstones-export", noArgs, func(cmd *cobra.Command, _ []string) error {
		// Whoever takes the list over removes these posts, and their images may be nowhere else.
		list, err := c.listTombstones(cmd.Context(), func(altered error) error { return altered })
		if err != nil {
			return err
		}
		stones := state.Holds(list) // without those that were lifted: another workspace must not take them over
		write := func(w io.Writer) error { return manifest.WriteReasons(w, stones) }
		if out == "" {
			return write(c.stdout)
		}
		if err := losesNone(out, list); err != nil {
			return err
		}
		if err := durable.Write(cmd.Context(), out, 0o600, write); err != nil {
			return fmt.Errorf("write the tombstones: %w", err)
		}
		return c.answer("tombstones-export", stonesFileAnswer{out, len(stones)})
	})
	registerOut(cmd, &out, "")
	return cmd
}

// losesNone refuses to write the list over a file that has tombstones of other posts: they may be known nowhere else.
func losesNone(out string, list []state.TombstoneEntry) error {
	f, _, err := userfile.Open(out)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return usageError("look at what lies under the name: %w", err)
	}
	defer f.Close()
	have, err := manifest.ReadTombstones(f)
	if err != nil {
		return usageError("%s is there and is no list of tombstones (%w): name another file", out, err)
	}
	have = slices.DeleteFunc(have, func(t manifest.Tombstone) bool {
		return slices.ContainsFunc(list, func(e state.TombstoneEntry) bool { return e.ID == t.ID })
	})
	if len(have) > 0 {
		return usageError("%s has %s that this workspace knows nothing of (the first is %s): they would be lost; name another file, "+
			"and keep both", out, page.Counted(len(have), "tombstone"), have[0].ID)
	}
	return nil
}

func (c *command) tombstonesLiftCommand() *cobra.Command {
	var statement string
	cmd := c.workspaceCommand("tombstones-lift", exactArgs(1, "one RELEASE: a release folder"),
		func(cmd *cobra.Command, args []string) error {
			if statement == "" {
				return usageError("%s needs --statement FILE, signed by the release's maintainers", cmd.CommandPath())
			}
			return c.lift(cmd.Context(), args[0], statement)
		})
	cmd.Flags().StringVar(&statement, "statement", "", "")
	return cmd
}

func (c *command) lift(ctx context.Context, path, file string) error {
	rel, err := c.openManifest(ctx, path)
	if err != nil {
		return err
	}
	signers, err := policy.ParseSigners(rel.Signers)
	if err != nil {
		return usageError("%s: %w", filepath.Join(rel.Dir, manifest.SettingsName), err)
	}
	signed, err := readSigned(file)
	if err != nil {
		return usageError("read the statement: %w", err)
	}
	l, signer, fault := policy.OpenLift(*signed, signers, policy.GrantedRelease{Name: rel.Name, Digest: rel.Digest},
		c.now())
	if fault != nil {
		return fmt.Errorf("the statement %s is rejected (%s): %w", file, fault.Reason, fault)
	}
	var published []manifest.Tombstone
	if rel.TombstonesPath != "" {
		published, err = readTombstones(rel.TombstonesPath, manifest.ReadTombstones)
		if err != nil {
			return err
		}
	}
	// Also refuses the workspace of another release, before it is locked.
	if _, err := c.isRehearsal(ctx, rel); err != nil {
		return err
	}
	return c.inWorkspace(ctx, nil, func(ws *workspace.Workspace) error {
		out, err := state.Lift(ctx, ws, l, signer, *signed, published)
		if err != nil {
			return err
		}
		return c.answer("tombstones-lift", liftAnswer{out, signer.Name})
	})
}

// A liftAnswer is what tombstones lift prints.
type liftAnswer struct {
	state.Lifting
	By string `json:"-"`
}

// What tombstones show and export print.
type (
	stonesAnswer struct {
		Tombstones []state.TombstoneEntry `json:"tombstones"`
	}
	stonesFileAnswer struct {
		File       string `json:"file"`
		Tombstones int    `json:"tombstones"`
	}
)
