package history

import (
	"context"
	"slices"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/saga"
)

// Timeline returns the history of an instance, the oldest entry first: its newest versions, at most most of them, and
// the attempts between them that failed or changed nothing. Such attempts have a Version whose Change is Attempted or
// Unchanged. Pass before to Earlier, as from, for older versions; it is zero if no older version is kept.
//
// from is Life.Page of an instance that has ended, or the Page of persistence.Store.LastPage for a live instance.
func (s *Store) Timeline(
	ctx context.Context, q pg.Queryer, instance, from saga.ID, most int,
) (timeline []Version, before saga.ID, err error) {
	return s.part(ctx, q, part{instance: instance, from: from, most: most, newest: true})
}

// Earlier continues a Timeline with older versions: from is the before of the newer part.
func (s *Store) Earlier(
	ctx context.Context, q pg.Queryer, instance, from saga.ID, most int,
) (timeline []Version, before saga.ID, err error) {
	return s.part(ctx, q, part{instance: instance, from: from, most: most})
}

// part is a part of a timeline.
type part struct {
	instance, from saga.ID
	most           int
	newest         bool // from is the page of the last version
}

func (s *Store) part(ctx context.Context, q pg.Queryer, p part) (timeline []Version, before saga.ID, err error) {
	most := p.most
	walked, err := s.walk(ctx, q, p.instance, p.from, most)
	if err != nil {
		return nil, saga.ID{}, err
	}
	for n := len(walked) - 2; n >= 0; n-- {
		walked[n].Before = walked[n+1].State
		walked[n].build(walked[n].Before)
	}
	shown := walked[:min(most, len(walked))]
	others, err := s.others(ctx, q, p.instance)
	if err != nil {
		return nil, saga.ID{}, err
	}
	// Attempts between two versions belong to the part with the later one.
	others = slices.DeleteFunc(others, func(v Version) bool {
		late := !p.newest && (len(shown) == 0 || v.At.After(shown[0].At))
		early := len(walked) > most && !v.At.After(walked[most].At)
		return late || early
	})
	if len(walked) > most {
		before = walked[most].Page
	}
	shown = slices.Clone(shown)
	slices.Reverse(shown)
	return merge(shown, others), before, nil
}

// merge inserts the others between the versions by their times. Versions keep their order: of two transactions, the
// later one may have committed first.
func merge(versions, others []Version) (timeline []Version) {
	for _, v := range versions {
		for len(others) > 0 && others[0].At.Before(v.At) {
			timeline, others = append(timeline, others[0]), others[1:]
		}
		timeline = append(timeline, v)
	}
	return append(timeline, others...)
}

// walk follows the versions of an instance from page to page, the newest first: most versions, their predecessor, and
// then as many as are needed to build the state of that one.
func (s *Store) walk(
	ctx context.Context, q pg.Queryer, instance, from saga.ID, most int,
) (walked []Version, err error) {
	for at := from; !at.IsZero(); {
		pages, err := s.pages(ctx, q, []saga.ID{at}, wanted{instance: instance})
		if err != nil {
			return nil, err
		}
		c := pages[at]
		place := slices.IndexFunc(c.versions, func(v Version) bool { return v.ID == instance })
		if place < 0 {
			break // the page is no longer kept
		}
		v := c.versions[place]
		v.Entries = c.entriesOf(place)
		walked = append(walked, v)
		if len(walked) > most && (v.state != stateDelta || len(walked) > most+wholeEvery) {
			break
		}
		at = v.Previous
	}
	return walked, nil
}

// entriesOf returns the entries of a version, by its place.
func (c *content) entriesOf(place int) (entries []Entry) {
	for n, of := range c.of {
		if of > 0 && c.changes[of-1].place == place {
			entries = append(entries, c.entries[n])
		}
	}
	return entries
}

// others returns the history of an instance from pages that its row does not name.
func (s *Store) others(ctx context.Context, q pg.Queryer, instance saga.ID) (found []Version, err error) {
	pages, err := s.find(ctx, q, []saga.ID{instance}, wanted{instance: instance})
	if err != nil {
		return nil, err
	}
	for _, c := range pages {
		for place, v := range c.versions {
			if v.ID == instance && v.Change == Unchanged {
				v.Entries = c.entriesOf(place)
				found = append(found, v)
			}
		}
		var failed []Entry
		for n, e := range c.entries {
			if c.of[n] == 0 && e.Instance == instance {
				failed = append(failed, e)
			}
		}
		if len(failed) > 0 {
			found = append(found, Version{At: c.at, Page: failed[0].Page, ID: instance, Entries: failed})
		}
	}
	return found, nil
}
