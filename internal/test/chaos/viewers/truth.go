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

// seen is what pages say: a value of each thing.
type seen map[string]string

// The things that are compared.
func waiting(endpoint string) string { return endpoint + " messages" }
func dead(endpoint string) string    { return endpoint + " dead letters" }
func order(key string) string        { return "order " + key }

// differences says what two sights do not have in common.
func (s seen) differences(truth seen) (all []string) {
	for thing, value := range truth {
		if s[thing] != value {
			all = append(all, fmt.Sprintf("%s: %s, and the page has %s", thing, value, s[thing]))
		}
	}
	return all
}

// tables reads the truth.
func (r *trial) tables(ctx context.Context) (seen, error) {
	rows, err := r.Pool.Query(ctx, sql.Get("truth"), r.chosen)
	if err != nil {
		return nil, fmt.Errorf("read the tables: %w", err)
	}
	truth := seen{}
	var thing, value string
	_, err = pgx.ForEachRow(rows, []any{&thing, &value}, func() error {
		truth[thing] = value
		return nil
	})
	for _, key := range r.chosen {
		if truth[order(key)] == "" && err == nil {
			return nil, fmt.Errorf("instance %s is gone", key)
		}
	}
	return truth, err
}

// pages reads what the pages say, as JSON.
func (r *trial) pages(ctx context.Context) (seen, error) {
	var now struct {
		Endpoints []struct {
			Endpoint                              string
			Ready, Delayed, Claimed, Parked, Dead int64
		}
	}
	if err := r.page(ctx, "/now.json", &now); err != nil {
		return nil, err
	}
	s := seen{}
	for _, e := range now.Endpoints {
		s[waiting(e.Endpoint)] = fmt.Sprint(e.Ready + e.Delayed + e.Claimed + e.Parked)
		s[dead(e.Endpoint)] = fmt.Sprint(e.Dead)
	}
	for _, key := range r.chosen {
		var one struct {
			Timeline []struct {
				Version int64
				State   Order
			}
		}
		if err := r.page(ctx, "/sagas/order/"+key+".json", &one); err != nil {
			return nil, err
		}
		last := int64(0)
		for _, v := range one.Timeline {
			if v.Version > last {
				last = v.Version
				s[order(key)] = fmt.Sprintf("version %d, order %d, paid %t", v.Version, v.State.N, v.State.Paid)
			}
		}
	}
	return s, nil
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
	err := lab.Await(ctx, truthWithin, "pages that agree with the tables", func() (bool, error) {
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
		r.Violate("stale", "", "the open page %s differs from the page as loaded now in %s", path, fragment)
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
