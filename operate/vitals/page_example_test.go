package vitals_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/edda-go/edda"
	"github.com/edda-go/edda/migrations"
	"github.com/edda-go/edda/operate/vitals"
	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5/pgxpool"
)

// chat is the receiver of a webhook. It prints the first text that it receives.
func chat(told chan<- struct{}) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		var alarm struct{ Vital, State, Sentence string }
		if err := json.NewDecoder(r.Body).Decode(&alarm); err != nil || alarm.Vital != vitals.DeadLetters {
			return
		}
		fmt.Println(alarm.State+":", alarm.Sentence)
		close(told)
	}
}

// A watch in one process of many, which reports a new group of dead letters to a chat.
func ExampleWatch() {
	s, err := server()
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	pool, err := pgxpool.New(ctx, s.DSN())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	const schema = "vitals_example"
	if err := migrations.Up(ctx, pool, migrations.Options{Schema: schema}); err != nil {
		fmt.Println(err)
		return
	}
	_, err = pool.Exec(ctx, `INSERT INTO vitals_example.dead_letter (endpoint, message_id, kind, header, body, attempts,
		conflicts, reason, error) VALUES ('orders', gen_random_uuid(), 'order.place', '{}', '{}', 24, 0, 'policy', '')`)
	if err != nil {
		fmt.Println(err)
		return
	}
	told := make(chan struct{})
	hook := httptest.NewServer(chat(told))
	defer hook.Close()
	_ = os.Setenv("ALARM_URL", hook.URL)

	if err := runWatch(ctx, stop, pool, schema, told); err != nil {
		fmt.Println(err)
	}
	// Output:
	// bad: Messages of kind "order.place" become dead letters in endpoint "orders" for a reason that is new (policy).
}

func runWatch(ctx context.Context, stop func(), pool *pgxpool.Pool, schema string, told <-chan struct{}) error {
	// page watch
	reader, err := vitals.New(pool, vitals.Options{Schema: schema})
	watch := &vitals.Watch{Reader: reader, Notify: vitals.Webhook(os.Getenv("ALARM_URL"), nil)}
	// end
	if err != nil {
		return err
	}
	watch.Logger = slog.New(slog.DiscardHandler)
	// page singleton
	run := func(term scheduler.Term) error { return watch.Run(term) }
	watcher, err := scheduler.NewSingleton(pool, "vitals", run, scheduler.SingletonOptions{Schema: schema})
	// end
	if err != nil {
		return err
	}
	host, err := edda.NewHost(watcher)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- host.Run(ctx) }()
	<-told
	stop()
	return <-ended
}
