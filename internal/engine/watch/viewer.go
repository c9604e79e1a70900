package watch

import (
	"context"

	"github.com/edda-go/edda/saga"
)

// View is an instance as of its last look. An empty ID means that there is no instance.
type View struct {
	Instance saga.Instance
	Complete bool // the followed instance has ended; Instance is the last known version
}

// Viewer follows one instance. It belongs to its caller's goroutine.
type Viewer struct {
	*topic
	seen   View
	absent bool   // it has reported that there is no instance
	fresh  uint64 // the first look that began after it joined
}

// Leave ends the viewer. After the last viewer of its Set it waits for the end of the loop.
func (v *Viewer) Leave() {
	if last := v.set.leave(v.topic); last != nil {
		last.Stop()
		_ = last.Wait() // its member has no errors
	}
}

// Continue makes Next skip version of the instance id, and older ones.
func (v *Viewer) Continue(id saga.ID, version int64) {
	v.seen.Instance = saga.Instance{ID: id, Saga: v.name.saga, Key: v.name.key, Version: version}
}

// Next waits for a change. Its error is the cause of ctx's end, or an error that time does not cure.
func (v *Viewer) Next(ctx context.Context) (View, error) {
	for {
		changed, news, err := v.news()
		if err != nil || news {
			return v.seen, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return View{}, context.Cause(ctx)
		}
	}
}

// news compares the topic with the last View. If nothing is new, changed is closed when the viewer should compare
// again.
func (v *Viewer) news() (changed <-chan struct{}, news bool, err error) {
	v.set.mu.Lock()
	defer v.set.mu.Unlock()
	now, known := v.now, v.seen.Instance
	switch {
	case v.looked < v.fresh:
	case v.err != nil:
		return nil, false, v.err
	case !known.ID.IsZero() && known.ID != now.ID:
		v.seen.Complete = true
		return nil, true, nil
	case !now.RememberedUntil().IsZero():
		v.seen = View{Instance: now, Complete: true}
		return nil, true, nil
	case now.ID.IsZero() && !v.absent:
		v.absent = true
		return nil, true, nil
	case now.Version > known.Version:
		v.seen.Instance = now
		return nil, true, nil
	}
	return v.changed, false, nil
}
