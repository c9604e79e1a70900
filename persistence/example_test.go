package persistence_test

import (
	"fmt"

	"github.com/edda-go/edda/internal/test/pgtest"
	"github.com/edda-go/edda/persistence"
)

// The examples share the pgxpool.Pool of a program, with the tables of Edda.
var check, openPool = pgtest.Must, pgtest.Example

type Customer struct {
	Name   string `json:"name"`
	Orders int    `json:"orders"`
}

// Records are values that a program defines, under a key. Change reads a record, changes it and writes it.
func ExampleNewRecords() {
	ctx, pool, end := openPool()
	defer end()
	customers, err := persistence.NewRecords[Customer]("", "customer")
	check(err)
	for range 2 {
		_, err = customers.Change(ctx, pool, "ann", func(c *Customer) error {
			c.Name = "Ann"
			c.Orders++
			return nil
		})
		check(err)
	}
	ann, err := customers.Get(ctx, pool, "ann") // pool may be the tx of a bus.HandleTx
	check(err)
	fmt.Printf("%+v\n", ann.Value)
	// Output: {Name:Ann Orders:2}
}

// Items are values that a program collects, each key once, in the order of their addition.
func ExampleNewItems() {
	ctx, pool, end := openPool()
	defer end()
	answers, err := persistence.NewItems[string]("", "answer")
	check(err)
	for guest, mood := range []string{"happy", "bored", "happy"} {
		_, err = answers.Add(ctx, pool, "survey-7", fmt.Sprint("guest-", guest), mood)
		check(err)
	}
	fresh, err := answers.Add(ctx, pool, "survey-7", "guest-0", "sad")
	check(err)
	fmt.Println("a second answer of a guest is new:", fresh)
	for answer, err := range answers.All(ctx, pool, "survey-7") {
		check(err)
		fmt.Println(answer.Key, answer.Value)
	}
	// Output:
	// a second answer of a guest is new: false
	// guest-0 happy
	// guest-1 bored
	// guest-2 happy
}
