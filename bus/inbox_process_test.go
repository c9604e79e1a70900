package bus_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/exec"
	"testing"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const receiverVariable = "EDDA_RECEIVER"

// isReceiver reports whether this process is a receiver, and runs it: it takes messages with a handler of its own. A
// line of its input is an id, and a line of its output an ack. It is killed between the commit and the ack of each
// message that is new to it.
func isReceiver() bool {
	text := os.Getenv(receiverVariable)
	if text == "" {
		return false
	}
	spec := workerSpec{}
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		log.Fatal(err)
	}
	if err := spec.receive(context.Background()); err != nil {
		log.Fatal(err)
	}
	return true
}

func (s workerSpec) receive(ctx context.Context) error {
	config, err := pgxpool.ParseConfig(s.DSN)
	if err != nil {
		return err
	}
	pgtest.Become(config, s.Role)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	b, err := bus.New(pool, bus.Options{Schema: s.Schema, Logger: slog.New(slog.DiscardHandler),
		Wakeup: pgtest.IfPooled(bus.PollOnly, bus.Notify)})
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fresh := false
		err := b.InTx(ctx, func(tx pgx.Tx) (err error) {
			if fresh, err = b.InboxTx(ctx, tx, "bank", lines.Text()); err != nil || !fresh {
				return err
			}
			if _, err = tx.Exec(ctx, "UPDATE "+pgx.Identifier{s.Schema, "account"}.Sanitize()+
				" SET balance = balance - 1"); err != nil {
				return err
			}
			_, err = b.SendTx(ctx, tx, innocent{})
			return err
		})
		if err != nil {
			return err
		}
		if fresh {
			killer{How: "kill"}.die()
		}
		_, _ = fmt.Fprintln(os.Stdout, lines.Text())
	}
	return nil
}

// deliver gives an id to a separate process, as a broker does, and reports whether it was acked.
func (w *world) deliver(id string) (acked bool) {
	w.t.Helper()
	spec, err := json.Marshal(workerSpec{DSN: pgtest.DSN(w.t), Schema: w.schema, Role: w.role})
	if err != nil {
		w.t.Fatal(err)
	}
	var out tail
	c := exec.CommandContext(w.t.Context(), os.Args[0])
	c.Env = append(os.Environ(), receiverVariable+"="+string(spec))
	c.Stderr = &out
	in, err := c.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	answers, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := io.WriteString(in, id+"\n"); err != nil {
		w.t.Error(err)
	}
	answer, _ := bufio.NewReader(answers).ReadString('\n') // a killed process sends nothing
	_ = in.Close()
	err = c.Wait()
	if acked = answer == id+"\n"; acked != (err == nil) || !acked && c.ProcessState.String() != "signal: killed" {
		w.t.Errorf("the receiver of %s said %q and ended: %v\n%s", id, answer, err, out.text)
	}
	return acked
}

// A handler of the user's own is killed between its commit and the ack. The broker delivers again; the effect happened
// once, and the message was sent once.
func TestReceivedSurvivesAKillBeforeTheAck(t *testing.T) {
	w := poisoned(t)
	w.exec(`CREATE TABLE edda.account (balance int NOT NULL)`)
	w.exec(`INSERT INTO edda.account VALUES (100)`)
	if w.role != "" {
		w.exec(`GRANT UPDATE, SELECT ON edda.account TO "` + w.role + `"`)
	}
	const n = 3
	for i := range n {
		id, deliveries := fmt.Sprintf("payment %d", i), 1
		for ; !w.deliver(id); deliveries++ {
			if deliveries == 5 {
				t.Fatalf("%s is never acked", id)
			}
		}
		if deliveries != 2 {
			t.Errorf("%s was delivered %d times, want 2", id, deliveries)
		}
	}
	w.want(100-n, `SELECT balance FROM edda.account`)
	w.want(n, `SELECT count(*) FROM `+w.queue("poisoned"))
}
