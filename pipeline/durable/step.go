package durable

import "context"

// HookKey is the context key of a func(step, name string) error that is called before each step that changes
// the disk, and makes it fail by returning an error. Only tests set one.
type HookKey struct{}

// Step announces a step that changes the disk: create, write, sync, rename, syncdir, mkdir or unlink of this
// package, or one of the caller's own. An error means: do not take it.
func Step(ctx context.Context, step, name string) error {
	if hook, ok := ctx.Value(HookKey{}).(func(step, name string) error); ok && hook != nil {
		return hook(step, name)
	}
	return nil
}
