package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/edda-go/edda/internal/pg"
	"github.com/edda-go/edda/internal/queue"
)

// The number of partitions is stored when the endpoint is installed, since messages wait in the partition that it gave
// their key.

func (p *Partitioned) storeNumber(ctx context.Context) error {
	b := p.bus
	if err := p.checkNumber(ctx); !errors.Is(err, ErrNotInstalled) {
		return err
	}
	if _, err := b.pool.Exec(ctx, b.sql.Get("set_partitions"), queue.PartitionSetting(p.name),
		strconv.Itoa(len(p.posts))); err != nil {
		return fmt.Errorf("store the number of partitions: %w", pg.Explain(err))
	}
	return p.checkNumber(ctx)
}

// errOtherNumber: the keys of messages that wait in the partitions would move away from them.
var errOtherNumber = errors.New("another number of partitions is stored")

func (p *Partitioned) checkNumber(ctx context.Context) error {
	stored, err := p.bus.routes.PartitionNumber(ctx, p.name)
	switch {
	case err != nil:
		return err
	case stored == "":
		return fmt.Errorf("%w: let the owner of the schema install it once, with Partitioned.Install", ErrNotInstalled)
	case stored != strconv.Itoa(len(p.posts)):
		return fmt.Errorf("%w: %s, and the options say %d: set PartitionOptions.Partitions to %[2]s, or stop all "+
			"processes of the endpoint, call Partitioned.Gather and install it anew",
			errOtherNumber, stored, len(p.posts))
	}
	return nil
}
