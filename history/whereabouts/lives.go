package whereabouts

import (
	"context"
	"fmt"
	"time"

	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/saga"
)

// Lives returns the lives of a key, the newest first, at most most: the live instance, if there is one, and ended ones.
func (r *Reader) Lives(ctx context.Context, name, key string, most int) (lives []history.Life, err error) {
	err = r.look(ctx, func(s *snapshot) error {
		lives = nil
		living, ok, err := s.living(ctx, name, key)
		if err != nil {
			return err
		}
		if ok {
			lives = append(lives, living)
		}
		ended, err := r.history.Lives(ctx, s.tx, name, key, most)
		if err != nil {
			return err
		}
		for _, l := range ended {
			if ok && l.ID == living.ID { // the instance has completed, and its saga remembers it
				lives = lives[1:]
			}
			lives = append(lives, l)
		}
		lives = lives[:min(most, len(lives))]
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the lives of %.80s %.80q: %w", name, key, pgerr.Explain(err))
	}
	return lives, nil
}

func (s *snapshot) living(ctx context.Context, name, key string) (l history.Life, ok bool, err error) {
	last, ok, err := s.sagas.LastPage(ctx, s.tx, name, key)
	if err != nil || !ok {
		return history.Life{}, false, err
	}
	id := last.Instance
	return history.Life{ID: id, Saga: name, Key: key, Began: began(id), Page: last.Page}, true, nil
}

// Life returns the life of an instance that lives or has ended; ok is false if neither is recorded.
func (r *Reader) Life(ctx context.Context, id saga.ID) (life history.Life, ok bool, err error) {
	err = r.look(ctx, func(s *snapshot) error {
		if life, ok, err = r.history.LifeOf(ctx, s.tx, id); err != nil || ok {
			return err
		}
		i, lives, err := r.sagas.NameOf(ctx, s.tx, id)
		if err != nil || !lives {
			return err
		}
		life, ok, err = s.living(ctx, i.Saga, i.Key)
		return err
	})
	if err != nil {
		return history.Life{}, false, fmt.Errorf("look for instance %s: %w", id, pgerr.Explain(err))
	}
	return life, ok, nil
}

// Timeline returns the history of a life, the oldest entry first: its newest versions, at most most of them, and the
// attempts between them that failed or changed nothing; see history.Store.Timeline. With a before that an earlier
// call has returned as next, it returns the preceding versions. next is zero if no older version is kept.
func (r *Reader) Timeline(
	ctx context.Context, of history.Life, before saga.ID, most int,
) (timeline []history.Version, next saga.ID, err error) {
	err = r.look(ctx, func(s *snapshot) error {
		read, from := r.history.Timeline, of.Page
		if !before.IsZero() {
			read, from = r.history.Earlier, before
		}
		timeline, next, err = read(ctx, s.tx, of.ID, from, most)
		return err
	})
	if err != nil {
		return nil, saga.ID{}, fmt.Errorf("read the versions of %.80s %.80q: %w", of.Saga, of.Key, pgerr.Explain(err))
	}
	return timeline, next, nil
}

// EndedSince counts the lives that have ended within a period, by saga, up to most for each.
func (r *Reader) EndedSince(
	ctx context.Context, sagas []string, period time.Duration, most int,
) (map[string]int64, error) {
	counts, err := r.history.EndedSince(ctx, r.pool, sagas, period, most)
	return counts, pgerr.Explain(err)
}

// Ended returns lives that have ended, the newest first.
func (r *Reader) Ended(ctx context.Context, of history.EndedOf) (lives []history.Life, err error) {
	lives, err = r.history.Ended(ctx, r.pool, of)
	return lives, pgerr.Explain(err)
}
