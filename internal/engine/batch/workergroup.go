package batch

import (
	"context"

	"github.com/edda-go/edda/internal/base/run"
	"github.com/edda-go/edda/internal/store/settings"
)

// workerGroup keeps as many workers running as the settings say: 0 while the endpoint is paused. It belongs to the
// goroutine that runs it.
type workerGroup struct {
	settings *settings.Follower
	workers  func(settings.Settings) int
	group    *run.Group
	work     func(taking context.Context) error // one worker, until taking ends and its batch is over
	pump     *pump

	leave []context.CancelFunc // cancels of the workers, in the order of their starts
}

// run starts and stops workers until ctx ends. The remaining workers then notice the end of ctx themselves.
func (c *workerGroup) run(ctx context.Context) error {
	for {
		changed := c.settings.Changed()
		now := c.settings.Now()
		quiet := c.pump.halt(now.Paused)
		c.resize(ctx, c.workers(now))
		if now.Paused && quiet != nil {
			select {
			case <-quiet:
			case <-ctx.Done():
				return nil
			}
		}
		c.settings.Report(now)
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// resize stops the workers that started last. A worker that is stopped finishes the batch in hand.
func (c *workerGroup) resize(ctx context.Context, n int) {
	for len(c.leave) > n {
		last := len(c.leave) - 1
		c.leave[last]()
		c.leave = c.leave[:last]
	}
	for len(c.leave) < n {
		taking, leave := context.WithCancel(ctx)
		c.leave = append(c.leave, leave)
		c.group.Go(func(context.Context) error {
			defer leave()
			defer c.pump.Wake() // a different worker takes the messages that it leaves
			return c.work(taking)
		})
	}
	c.pump.Wake()
}
