package history

import (
	"context"
	"slices"

	"github.com/edda-go/edda/saga"
)

// Timeline returns what happened to an instance, the oldest first: its newest versions, most of them at most, that are
// on the page from or before it, and the attempts that failed or changed nothing meanwhile. Those have a Version
// without a Change, or with Unchanged. before is the page from which to go on with older versions, zero if there is
// none.
//
// from is Life.Page of an instance that has ended, and what persistence.Store.LastPage returns of one that lives.
func (s *Store) Timeline(
	ctx context.Context, q Queryer, instance, from saga.ID, most int,
) (timeline []Version, before saga.ID, err error) {
	walked, err := s.walk(ctx, q, instance, from, most)
	if err != nil {
		return nil, saga.ID{}, err
	}
	for n := len(walked) - 2; n >= 0; n-- {
		walked[n].build(walked[n+1].State)
	}
	if len(walked) > most {
		before, walked = walked[most].Page, walked[:most]
	} else if len(walked) > 0 {
		before = walked[len(walked)-1].Previous
		if len(walked) < most {
			before = saga.ID{}
		}
	}
	others, err := s.others(ctx, q, instance)
	if err != nil {
		return nil, saga.ID{}, err
	}
	slices.Reverse(walked)
	if !before.IsZero() && len(walked) > 0 {
		oldest := walked[0].At // what is older belongs to a page of the timeline behind this one
		others = slices.DeleteFunc(others, func(v Version) bool { return v.At.Before(oldest) })
	}
	return merge(walked, others), before, nil
}

// merge puts the others between the versions by their times. Versions stay in their order: of two transactions, the one
// that began later may have been the first to commit.
func merge(versions, others []Version) (timeline []Version) {
	for _, v := range versions {
		for len(others) > 0 && others[0].At.Before(v.At) {
			timeline, others = append(timeline, others[0]), others[1:]
		}
		timeline = append(timeline, v)
	}
	return append(timeline, others...)
}

// walk follows the versions of an instance from page to page, most of them, and then as many as it takes to build the
// oldest state.
func (s *Store) walk(ctx context.Context, q Queryer, instance, from saga.ID, most int) (walked []Version, err error) {
	for at := from; !at.IsZero(); {
		pages, err := s.pages(ctx, q, []saga.ID{at}, wanted{instance: instance})
		if err != nil {
			return nil, err
		}
		c := pages[at]
		place := slices.IndexFunc(c.versions, func(v Version) bool { return v.ID == instance })
		if place < 0 {
			break // the page is not kept any more
		}
		v := c.versions[place]
		v.Entries = c.entriesOf(place)
		walked = append(walked, v)
		enough := len(walked) >= most
		if enough && (v.state != stateDelta || len(walked) >= most+wholeEvery) {
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

// others returns what pages tell of an instance whose row does not name them.
func (s *Store) others(ctx context.Context, q Queryer, instance saga.ID) (found []Version, err error) {
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
