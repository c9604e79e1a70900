package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"github.com/edda-go/edda/eddaui"
	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/test/demo/big"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed meter.sql
var statements string

var sql = pg.Parse(statements)

// reader is the application_name of the connections that pages read with.
const reader = "pages"

func everything(*http.Request) (eddaui.Actor, error) {
	return eddaui.Actor{Name: "ann", Permissions: eddaui.View | eddaui.Bodies}, nil
}

// meter requests pages, and measures them.
type meter struct {
	options
	pool    *pgxpool.Pool
	reading *pgxpool.Pool
	world   *big.World
	ui      *eddaui.UI
}

// cost is the cost of a page.
type cost struct {
	page            big.Page
	html, json      []time.Duration // sorted
	buffers, asked  int64
	read            []string // tables that were read from one end to the other
	missing, failed bool
}

func (m *meter) all(ctx context.Context) error {
	var all []cost
	for _, p := range m.world.Pages() {
		if !strings.Contains(p.Name, m.only) {
			continue
		}
		c, err := m.page(ctx, p)
		if err != nil {
			return fmt.Errorf("page %q: %w", p.Name, err)
		}
		all = append(all, c)
		fmt.Println(c)
		if m.detail {
			if err := m.statements(ctx); err != nil {
				return err
			}
		}
	}
	return m.judge(all)
}

// statements prints the statements of the page that was requested last.
func (m *meter) statements(ctx context.Context) error {
	rows, err := m.pool.Query(ctx, sql.Get("statements"))
	if err != nil {
		return err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, line := range lines {
		fmt.Println("    " + line)
	}
	return err
}

// page requests a page until all its data is in memory, and then measures.
func (m *meter) page(ctx context.Context, p big.Page) (c cost, err error) {
	c.page = p
	for _, address := range []string{p.Path, big.JSON(p.Path)} {
		for range 3 {
			status, body := m.ask(ctx, address)
			c.missing = status == http.StatusNotFound && strings.Contains(body, "no such page")
			if c.missing {
				return c, nil
			}
			c.failed = c.failed || status >= http.StatusInternalServerError
		}
	}
	for range m.times {
		c.html = append(c.html, m.time(ctx, p.Path))
		c.json = append(c.json, m.time(ctx, big.JSON(p.Path)))
	}
	slices.Sort(c.html)
	slices.Sort(c.json)
	return c, m.statistics(ctx, &c)
}

func (m *meter) ask(ctx context.Context, path string) (status int, body string) {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://edda.example"+path, nil)
	w := httptest.NewRecorder()
	m.ui.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func (m *meter) time(ctx context.Context, path string) time.Duration {
	began := time.Now()
	m.ask(ctx, path)
	return time.Since(began)
}

// statistics requests the page once more, and reads the server's counters of this request.
func (m *meter) statistics(ctx context.Context, c *cost) (err error) {
	c.read, err = m.world.ReadWhole(ctx, reader, m.reading, func() {
		_, err := m.pool.Exec(ctx, sql.Get("forget"))
		c.failed = c.failed || err != nil
		m.ask(ctx, c.page.Path)
	})
	if err != nil {
		return err
	}
	return m.pool.QueryRow(ctx, sql.Get("buffers")).Scan(&c.buffers, &c.asked)
}

func median(sorted []time.Duration) time.Duration { return sorted[len(sorted)/2] }

// spread returns the best, the median and the worst in milliseconds. On a busy machine the best is the most reliable.
func spread(sorted []time.Duration) string {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return fmt.Sprintf("%6.1f %6.1f %6.1f", ms(sorted[0]), ms(median(sorted)), ms(sorted[len(sorted)-1]))
}

func (c cost) String() string {
	if c.missing {
		return fmt.Sprintf("%-28s is not there", c.page.Name)
	}
	text := fmt.Sprintf("%-28s html %s ms  json %s ms  %6d buffers  %3d statements", c.page.Name, spread(c.html),
		spread(c.json), c.buffers, c.asked)
	if len(c.read) > 0 {
		text += "  read whole: " + strings.Join(c.read, ", ")
	}
	if c.failed {
		text += "  FAILED"
	}
	return text
}

// judge returns an error for each page that misses the limit.
func (m *meter) judge(all []cost) (err error) {
	for _, c := range all {
		if c.missing {
			continue
		}
		if took := max(median(c.html), median(c.json)); took > m.most || c.failed {
			err = errors.Join(err, fmt.Errorf("page %q took %v, which is more than %v, or failed", c.page.Name,
				took.Round(time.Millisecond), m.most))
		}
		for _, table := range c.read {
			if strings.HasPrefix(table, "queue_") {
				err = errors.Join(err, fmt.Errorf("page %q has read all of %s", c.page.Name, table))
			}
		}
	}
	return err
}
