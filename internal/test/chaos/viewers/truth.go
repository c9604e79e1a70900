package viewers

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/edda-go/edda/internal/test/chaos/lab"
	"github.com/jackc/pgx/v5"
)

// seen is what pages say.
type seen struct {
	queued, dead map[string]int64 // by endpoint
	versions     map[string]int64 // of chosen instances, by key
	states       map[string]string
}

// differences says what two sights do not have in common.
func (s seen) differences(truth seen) (all []string) {
	for endpoint, n := range truth.queued {
		if s.queued[endpoint] != n {
			all = append(all, fmt.Sprintf("%s has %d messages, and the page says %d", endpoint, n, s.queued[endpoint]))
		}
	}
	for endpoint, n := range truth.dead {
		if s.dead[endpoint] != n {
			all = append(all, fmt.Sprintf("%s has %d dead letters, and the page says %d", endpoint, n,
				s.dead[endpoint]))
		}
	}
	for key, v := range truth.versions {
		if s.versions[key] != v || s.states[key] != truth.states[key] {
			all = append(all, fmt.Sprintf("order %s is %s in version %d, and the page says %s in version %d", key,
				truth.states[key], v, s.states[key], s.versions[key]))
		}
	}
	return all
}

// tables reads the truth.
func (r *trial) tables(ctx context.Context) (s seen, err error) {
	if s.queued, err = r.counts(ctx, "queued"); err != nil {
		return s, err
	}
	if s.dead, err = r.counts(ctx, "dead_by_endpoint"); err != nil {
		return s, err
	}
	s.versions, s.states = map[string]int64{}, map[string]string{}
	for _, key := range r.chosen {
		var (
			version int64
			state   string
		)
		if err := r.Row(ctx, sql.Get("instance"), []any{key}, &version, &state); err != nil {
			return s, fmt.Errorf("read instance %s: %w", key, err)
		}
		s.versions[key], s.states[key] = version, state
	}
	return s, nil
}

func (r *trial) counts(ctx context.Context, name string) (map[string]int64, error) {
	rows, err := r.Pool.Query(ctx, sql.Get(name))
	if err != nil {
		return nil, fmt.Errorf("count %s: %w", name, err)
	}
	counts := map[string]int64{}
	var (
		endpoint string
		n        int64
	)
	_, err = pgx.ForEachRow(rows, []any{&endpoint, &n}, func() error {
		counts[endpoint] = n
		return nil
	})
	return counts, err
}

// pages reads what the pages say, as JSON.
func (r *trial) pages(ctx context.Context) (s seen, err error) {
	var now struct {
		Endpoints []struct {
			Endpoint                              string
			Ready, Delayed, Claimed, Parked, Dead int64
		}
	}
	if err := r.page(ctx, "/now.json", &now); err != nil {
		return s, err
	}
	s = seen{map[string]int64{}, map[string]int64{}, map[string]int64{}, map[string]string{}}
	for _, e := range now.Endpoints {
		s.queued[e.Endpoint], s.dead[e.Endpoint] = e.Ready+e.Delayed+e.Claimed+e.Parked, e.Dead
	}
	for _, key := range r.chosen {
		var one struct {
			Timeline []struct {
				Version int64
				State   json.RawMessage
			}
		}
		if err := r.page(ctx, "/sagas/order/"+key+".json", &one); err != nil {
			return s, err
		}
		for _, v := range one.Timeline {
			if v.Version > s.versions[key] {
				s.versions[key], s.states[key] = v.Version, compact(v.State)
			}
		}
	}
	return s, nil
}

// compact is JSON without white space.
func compact(text json.RawMessage) string {
	var value Order
	if json.Unmarshal(text, &value) != nil {
		return string(text)
	}
	out, _ := json.Marshal(value) // a struct of a number and a flag
	return string(out)
}

func (r *trial) page(ctx context.Context, path string, into any) error {
	body, err := get(ctx, r.base+path)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(into); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// truthWithin is how long after the end pages may show what was. Ten instances that are open are read in turn.
const truthWithin = 40 * time.Second

// compare notes where pages differ from the tables, and open pages from those that are loaded now.
func (r *trial) compare(ctx context.Context) error {
	var found []string
	err := lab.Await(ctx, truthWithin, "pages that say what is", func() (bool, error) {
		truth, err := r.tables(ctx)
		if err != nil {
			return false, err
		}
		said, err := r.pages(ctx)
		if err != nil {
			return false, err
		}
		found = said.differences(truth)
		return len(found) == 0, nil
	})
	for _, what := range found {
		r.Violate("untrue", "", "%s", what)
	}
	if len(found) == 0 && err != nil {
		return err
	}
	var stale map[string]string
	err = lab.Await(ctx, truthWithin, "open pages that are up to date", func() (bool, error) {
		stale, err = r.stale(ctx)
		return len(stale) == 0, err
	})
	for path, fragment := range stale {
		r.Violate("stale", "", "the open page %s differs from the one that is loaded now in %s", path, fragment)
	}
	if len(stale) == 0 {
		return err
	}
	return nil
}

// stale names a fragment of each open page that differs from the page as it is loaded now.
func (r *trial) stale(ctx context.Context) (map[string]string, error) {
	loaded, found := map[string]string{}, map[string]string{}
	for _, o := range r.open {
		if _, ok := loaded[o.path]; !ok {
			body, err := get(ctx, r.base+o.path)
			if err != nil {
				return nil, err
			}
			text, err := io.ReadAll(body)
			_ = body.Close()
			if err != nil {
				return nil, fmt.Errorf("load %s: %w", o.path, err)
			}
			loaded[o.path] = string(text)
		}
		if fragment := o.stale(loaded[o.path]); fragment != "" {
			found[o.path] = fragment
		}
	}
	return found, nil
}
