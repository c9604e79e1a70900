package scheduler

import (
	"testing"
	"time"
)

func TestSingletonRenewsEveryTenSeconds(t *testing.T) {
	t.Parallel()
	for ttl, want := range map[time.Duration]SingletonOptions{
		0:               {TTL: 30 * time.Second, Renew: 10 * time.Second},
		time.Minute:     {TTL: time.Minute, Renew: 10 * time.Second},
		9 * time.Second: {TTL: 9 * time.Second, Renew: 3 * time.Second},
	} {
		if o := (SingletonOptions{TTL: ttl}).withDefaults(); o.TTL != want.TTL || o.Renew != want.Renew {
			t.Errorf("a TTL of %v becomes %v, renewed every %v; want %v and %v", ttl, o.TTL, o.Renew, want.TTL,
				want.Renew)
		}
	}
}
