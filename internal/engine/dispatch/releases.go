package dispatch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/jackc/pgx/v5"
)

// Release is one declaration of an owner, with the programs that run it.
type Release struct {
	Owner       string
	Number      int64
	First, Seen time.Time // when it was first declared, and when a program with it last started or ended
	Manifests   []string
	Programs    []Program // the running programs, the first 100; empty if it does not run any more

	Decides bool     // it is the newest running release of its owner
	Differs []string // manifests that the deciding release declares with other contents
	Alone   []string // manifests that the deciding release does not declare

	sums []string // of the manifests
}

// Program is a process that runs a scheduler.
type Program struct {
	Host    string
	PID     int
	Started time.Time
}

// Releases returns the releases of an owner, or of all owners for "", that run or ran within the last hour: by owner,
// the newest first, at most 200.
func Releases(ctx context.Context, db pg.Queryer, schema pg.Schema, owner string) ([]Release, error) {
	rows, err := db.Query(ctx, pg.Load(statements, schema).Get("releases"), owner)
	if err != nil {
		return nil, fmt.Errorf("read releases: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Release, err error) {
		var hosts []string
		var pids []int32
		var started []time.Time
		err = row.Scan(&r.Owner, &r.Number, &r.First, &r.Seen, &r.Manifests, &r.sums, &hosts, &pids, &started)
		for n, host := range hosts {
			r.Programs = append(r.Programs, Program{host, int(pids[n]), started[n]})
		}
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("read releases: %w", err)
	}
	compareReleases(all)
	return all, nil
}

func compareReleases(all []Release) {
	deciding := map[string]*Release{}
	for n := range all {
		r := &all[n]
		if d := deciding[r.Owner]; d == nil && len(r.Programs) > 0 {
			r.Decides, deciding[r.Owner] = true, r
		}
	}
	for n := range all {
		r := &all[n]
		d := deciding[r.Owner]
		if d == nil || r.Decides {
			continue
		}
		for i, name := range r.Manifests {
			switch at := slices.Index(d.Manifests, name); {
			case at < 0:
				r.Alone = append(r.Alone, name)
			case d.sums[at] != r.sums[i]:
				r.Differs = append(r.Differs, name)
			}
		}
	}
}
