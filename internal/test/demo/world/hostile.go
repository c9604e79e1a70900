package world

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/history"
	"github.com/edda-go/edda/recoverability"
	"github.com/edda-go/edda/saga"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5/pgxpool"
)

// HostileTexts are texts that an attacker might write to do harm on a page. Each script among them sets window.hurt.
var HostileTexts = []string{
	`<script>window.hurt=1</script>`,
	`</script><script>window.hurt=2</script>`,
	`"><script>window.hurt=3</script>`,
	`'><img src=x onerror=window.hurt=4>`,
	`<img src=x onerror="window.hurt=5">`,
	`<svg onload=window.hurt=6>`,
	`<svg><script>window.hurt=7</script></svg>`,
	`</pre><script>window.hurt=8</script>`,
	`</code></td></tr></table><script>window.hurt=9</script>`,
	`<iframe srcdoc="<script>parent.hurt=10</script>"></iframe>`,
	`javascript:window.hurt=11`,
	`<a href="javascript:window.hurt=12" autofocus onfocus=window.hurt=12>x</a>`,
	`" onmouseover="window.hurt=13" x="`,
	`' onfocus='window.hurt=14' autofocus='`,
	`<base href="https://evil.example/">`,
	`<meta http-equiv="refresh" content="0;url=https://evil.example/">`,
	`<link rel="stylesheet" href="https://evil.example/x.css">`,
	`<form action="https://evil.example/"><button>x</button></form>`,
	`<style>body{display:none}</style>`,
	`{{7*7}} {{.Root}} {{template "layout"}}`,
	`${7*7} #{7*7} <%= 7*7 %>`,
	`<!--><script>window.hurt=22</script>-->`,
	`<![CDATA[<script>window.hurt=23</script>]]>`,
	"&lt;script&gt;window.hurt=24&lt;/script&gt; &amp; &#0; \u2028window.hurt=24\u2029",
	"\u202egnp.exe\u202c \u2066right\u2069 \u200fto\u200e \u061cleft",
	"\x1b[2J\x1b[31mred\x1b[0m \a\b\f\v\x7f \u0085 \u009b31m",
	"line one\r\nSet-Cookie: a=b\r\n\r\n<script>window.hurt=27</script>",
	"a\u0301\u0302\u0303 \ufeff\u200b\u200c\u200d \U000e0041\U0001f4a9 \ufffd",
	`../../../etc/passwd %2e%2e%2f ?a=b&c=d#e .json`,
	strings.Repeat("very long ", 50) + "<b>",
}

type (
	knock  struct{ Key, Text, Nul string }
	shut   struct{ Text string }
	leave  struct{ Text string }
	caller struct{ Texts []string }
)

func (knock) Kind() string { return "door.knock" }
func (shut) Kind() string  { return "door.shut" }
func (leave) Kind() string { return "door.leave" }

// Callers is a saga whose keys and states hold the texts of callers.
var Callers = saga.Define("caller", saga.Options{},
	saga.StartedBy(func(m knock) string { return m.Key }, func(c *caller, ctx *saga.Context, m knock) error {
		c.Texts = append(c.Texts, m.Text, m.Nul)
		ctx.Send(shut{Text: m.Text}, saga.WithHeader("note", m.Text))
		ctx.Timeout(24*time.Hour, leave{Text: m.Text}, saga.Named(beginning(m.Key, 63)))
		return nil
	}),
	saga.OnTimeout(func(*caller, *saga.Context, leave) error { return nil }),
)

// Hostile makes a schema in which every text is one of HostileTexts, where the schema accepts them.
func Hostile(ctx context.Context, pool *pgxpool.Pool, schema string) (*Stage, error) {
	s, err := newStage(pool, schema, history.Options{Level: history.Bodies})
	if err != nil {
		return nil, err
	}
	s.Sagas = []*saga.Definition{Callers}
	if err := errors.Join(s.knocks(ctx), s.offices(ctx)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// knocks sends a message with each of the texts. The message that the saga sends then becomes a dead letter.
func (s *Stage) knocks(ctx context.Context) error {
	callers, err := bus.NewEndpoint(s.Bus, "callers", bus.EndpointOptions{Concurrency: 1}, bus.Saga(Callers))
	if err != nil {
		return err
	}
	doors, err := bus.NewEndpoint(s.Bus, "doors", bus.EndpointOptions{
		Concurrency: 1, Policy: recoverability.Always(recoverability.DeadLetter()),
	}, bus.Handle(func(_ *bus.Context, m shut) error { return errors.New(m.Text) }))
	if err != nil {
		return err
	}
	for _, e := range []endpoint{callers, doors} {
		if err := s.start(ctx, e); err != nil {
			return err
		}
	}
	for _, text := range HostileTexts {
		m := knock{Key: beginning(text, 512), Text: text, Nul: "a\x00b"}
		sent, err := s.Bus.Send(ctx, m, saga.WithHeader("note", text))
		if err != nil {
			return err
		}
		s.First = sent.ID
	}
	return s.until(ctx, "all have knocked", func(l look) bool {
		return l.letters == int64(len(HostileTexts)) && l.ready["callers"]+l.ready["doors"] == 0
	})
}

// offices writes the rows of all other tables with texts of users.
func (s *Stage) offices(ctx context.Context) error {
	if err := s.exec(ctx, "ids"); err != nil {
		return err
	}
	for n, text := range HostileTexts {
		for _, name := range []string{"hostile letter", "hostile instance"} {
			if err := s.exec(ctx, name, n, beginning(text, 512)); err != nil {
				return err
			}
		}
	}
	for _, name := range []string{"hostile job", "hostile holder", "hostile process"} {
		if err := s.exec(ctx, name, HostileTexts[0]); err != nil {
			return err
		}
	}
	if err := s.Op.Endpoints().Pause(ctx, "callers", HostileTexts[1]+HostileTexts[24]); err != nil {
		return err
	}
	store, err := scheduler.NewStore(s.pool, scheduler.StoreOptions{Schema: s.schema})
	if err != nil {
		return err
	}
	m := scheduler.Manifest{
		Name: "night/knock", When: scheduler.Cron("0 3 * * *", "Europe/Berlin"),
		Message: knock{Key: "night", Text: HostileTexts[0], Nul: "a\x00b"},
	}
	if err := store.Put(ctx, m); err != nil {
		return err
	}
	if err := store.Pause(ctx, m.Name, HostileTexts[2]); err != nil {
		return err
	}
	run, err := store.Trigger(ctx, m.Name, nil, scheduler.TriggerOptions{})
	if err != nil {
		return err
	}
	return store.Cancel(ctx, run, HostileTexts[3])
}

// beginning returns at most most bytes of a text, in whole characters.
func beginning(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}
