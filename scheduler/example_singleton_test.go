package scheduler_test

import (
	"fmt"
	"time"

	"github.com/edda-go/edda/scheduler"
	"github.com/jackc/pgx/v5"
)

// However many replicas run, one of them refreshes the rates every hour. Its write commits only if no later term has
// begun.
func ExampleNewSingleton() {
	ctx, pool, enough := openRates()
	defer closeRates()

	refresh := func(term scheduler.Term) error {
		euro := 1.08 // fetched from somewhere, before the transaction
		err := term.InTx(term, func(tx pgx.Tx) error {
			_, err := tx.Exec(term, "UPDATE rate SET euro = $1 WHERE currency = 'USD'", euro)
			return err
		})
		if err == nil {
			fmt.Println("refreshed in term", term.Epoch())
			enough() // so that the example ends
		}
		return err
	}
	rates, err := scheduler.NewSingleton(pool, "rates", scheduler.Sweep(time.Hour, refresh),
		scheduler.SingletonOptions{Schema: ratesSchema})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = rates.Run(ctx) // on each replica, or by an edda.Host beside its endpoints
	fmt.Println(rates.Name(), "ended:", err)

	// Output:
	// refreshed in term 1
	// singleton/rates ended: <nil>
}
