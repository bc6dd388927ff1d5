package broker

import (
	"context"

	"github.com/opencluster/oclocks/conf/shared"
)

// Change changes the shared configuration.
func (d *Daemon) Change(ctx context.Context, command shared.Command) error {
	result, err := d.control.Change(ctx, command)
	if err != nil {
		return err
	}
	return result.Err()
}
