package scheduler

import (
	"testing"
	"time"
)

func TestSingletonRenewsEveryTenSeconds(t *testing.T) {
	t.Parallel()
	for ttl, want := range map[time.Duration]SingletonOptions{
		0:               {Lease: 30 * time.Second, Renew: 10 * time.Second},
		time.Minute:     {Lease: time.Minute, Renew: 10 * time.Second},
		9 * time.Second: {Lease: 9 * time.Second, Renew: 3 * time.Second},
	} {
		if o := (SingletonOptions{Lease: ttl}).withDefaults(); o.Lease != want.Lease || o.Renew != want.Renew {
			t.Errorf("a lease of %v becomes %v, renewed every %v; want %v and %v", ttl, o.Lease, o.Renew, want.Lease,
				want.Renew)
		}
	}
}
