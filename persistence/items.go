package persistence

import (
	"context"
	_ "embed"
	"fmt"
	"iter"
	"time"

	"github.com/edda-go/edda/internal/base/pg"
	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/edda-go/edda/saga"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed items.sql
var itemStatements string

const (
	mostAdded      = 10_000   // items of one AddAll
	mostAddedBytes = 64 << 20 // of their keys and values
	pageItems      = 1000     // items of a page of All
	pageBytes      = 4 << 20  // bytes of values; the item that exceeds it is the last of its page
)

// Item is a value that a program collects, under a key.
type Item[T any] struct {
	Key    string
	Number int64     // grows in the order of addition, with gaps; AddAll does not use it
	Added  time.Time // when the transaction that added it began; AddAll does not use it
	Value  T
}

// Items are the items of one collection. A program adds them next to its sagas, one row for each item, so that no
// transaction waits for the row of the saga and the saga's state does not grow. The argument of names the owner of an
// item, such as the key of a saga instance. An item's key is unique there, so a message that comes twice adds one
// item. Items never change. Items is safe for concurrent use.
//
// The arguments of and key have 1 to 512 bytes of UTF-8 without NUL. A value is stored as JSON, at most 1 MiB; the
// error about a larger one is saga.ErrTooLarge. A call that exceeds a limit fails before any statement is sent.
//
// Each method except All is one statement, which commits by itself if db is a pool or a connection.
//
// Two transactions that add different keys never wait for each other. If they add the same key, the second waits for
// the end of the first; if the first commits, the second adds nothing, and if it rolls back, the second adds the item.
// So two transactions that add the same keys in different orders may deadlock, as with any table. At REPEATABLE READ
// and SERIALIZABLE an addition or a Clear fails with the error 40001 of Postgres if a concurrent transaction has added
// the key, or cleared the item, since this transaction began to read; on a pool, Items always use READ COMMITTED.
//
// The order of addition is not the order of commits, because an item gets its number before its transaction commits.
// A reader that iterates while others add items may miss an item that commits late with a low number. So count the
// items, and once all are there, read them in the same transaction.
type Items[T any] struct {
	sql        pg.Statements
	collection string
}

// NewItems returns the items of a collection in a schema; "" is "edda". It returns an error unless the collection's
// name is valid for saga.CheckName. It does no I/O.
func NewItems[T any](schema, collection string) (*Items[T], error) {
	parsed, err := pg.ParseSchema(schema)
	if err == nil {
		err = saga.CheckName(collection)
	}
	if err != nil {
		return nil, fmt.Errorf("items of %.80q: %w", collection, err)
	}
	return &Items[T]{sql: pg.Load(itemStatements, parsed), collection: collection}, nil
}

// Add adds an item if its key has none, and reports whether it did: fresh is false if the key had an item, whatever
// its value.
func (i *Items[T]) Add(ctx context.Context, db DB, of, key string, value T) (fresh bool, err error) {
	text, err := i.encode(of, key, value)
	if err != nil {
		return false, i.failed("add an item", of, err)
	}
	added, err := write(ctx, db, i.sql.Get("item_add"), i.collection, of, key, text)
	if err != nil {
		return false, i.failed("add an item", of, fmt.Errorf("item %s: %w", shortened(key), err))
	}
	return added == 1, nil
}

// AddAll adds items in their order, except items whose key exists already or comes a second time. It returns the
// number of items that it added. After an error it has added nothing. It accepts at most 10,000 items, and 64 MiB of
// keys and encoded values; the error about more is saga.ErrTooLarge.
func (i *Items[T]) AddAll(ctx context.Context, db DB, of string, items ...Item[T]) (fresh int, err error) {
	if len(items) > mostAdded {
		err := fmt.Errorf("%d items, limit %d: %w", len(items), mostAdded, saga.ErrTooLarge)
		return 0, i.failed("add items", of, err)
	}
	if len(items) == 0 {
		return 0, nil
	}
	keys, values, bytes := make([]string, len(items)), make([]string, len(items)), 0
	for n := range items {
		keys[n] = items[n].Key
		if values[n], err = i.encode(of, keys[n], items[n].Value); err != nil {
			return 0, i.failed("add items", of, err)
		}
		if bytes += len(keys[n]) + len(values[n]); bytes > mostAddedBytes {
			err := fmt.Errorf("%d of %d items have %d bytes of keys and values, limit %d: %w", n+1, len(items), bytes,
				mostAddedBytes, saga.ErrTooLarge)
			return 0, i.failed("add items", of, err)
		}
	}
	if fresh, err = write(ctx, db, i.sql.Get("item_add_all"), i.collection, of, keys, values); err != nil {
		return 0, i.failed("add items", of, err)
	}
	return fresh, nil
}

// Count returns the number of items: the committed ones, and those of its own transaction. It takes no lock and never
// waits. It reads an index entry for each item.
func (i *Items[T]) Count(ctx context.Context, db DB, of string) (count int, err error) {
	if err = checkArgument("of", of); err == nil {
		// Planned on each call: a plan that was made for the empty table would read the whole table.
		err = db.QueryRow(ctx, i.sql.Get("item_count"), pg.Planned, i.collection, of).Scan(&count)
	}
	if err != nil {
		return 0, i.failed("count items", of, err)
	}
	return count, nil
}

// All iterates over the items in the order of addition. It reads pages of at most 1,000 items and about 5 MiB, with
// one statement each: between two pages db is free for other statements, and at READ COMMITTED each page has the
// items that were committed before it was read. It takes no lock and never waits. An error ends it.
func (i *Items[T]) All(ctx context.Context, db DB, of string) iter.Seq2[Item[T], error] {
	return func(yield func(Item[T], error) bool) {
		after, more := int64(0), true
		for more {
			page, err := []Item[T](nil), checkArgument("of", of)
			if err == nil {
				page, more, err = i.page(ctx, db, of, after)
			}
			if err != nil {
				yield(Item[T]{}, i.failed("read items", of, err))
				return
			}
			for _, item := range page {
				if !yield(item, nil) {
					return
				}
				after = item.Number
			}
		}
	}
}

// page reads the items after a number. It reports whether there may be more.
func (i *Items[T]) page(ctx context.Context, db DB, of string, after int64) (page []Item[T], more bool, err error) {
	rows, err := db.Query(ctx, i.sql.Get("item_page"), pg.Planned, i.collection, of, after, pageItems, pageBytes)
	if err != nil {
		return nil, false, err
	}
	near := 0
	page, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (item Item[T], err error) {
		var text []byte
		if err := row.Scan(&item.Key, &item.Number, &item.Added, &text, &near); err != nil {
			return item, err
		}
		if err := decodeValue(text, &item.Value); err != nil {
			return item, fmt.Errorf("item %s: %w", shortened(item.Key), err)
		}
		return item, nil
	})
	return page, near == pageItems || len(page) < near, err
}

// Clear deletes all items and returns their number. It does not delete an item of a transaction that has not
// committed yet.
func (i *Items[T]) Clear(ctx context.Context, db DB, of string) (removed int, err error) {
	if err = checkArgument("of", of); err == nil {
		removed, err = write(ctx, db, i.sql.Get("item_clear"), pg.Planned, i.collection, of)
	}
	if err != nil {
		return 0, i.failed("clear items", of, err)
	}
	return removed, nil
}

func (i *Items[T]) encode(of, key string, value T) (text string, err error) {
	if err = checkArgument("of", of); err == nil {
		err = checkArgument("key", key)
	}
	if err != nil {
		return "", err
	}
	if text, err = encodeValue(value); err != nil {
		return "", fmt.Errorf("item %s: %w", shortened(key), err)
	}
	return text, nil
}

// write runs a statement that writes, and returns the number of rows that it wrote.
func write(ctx context.Context, db DB, sql string, args ...any) (int, error) {
	if pool, ok := db.(*pgxpool.Pool); ok { // READ COMMITTED, whatever the database's default is
		tag, err := pg.Committed(pool).Exec(ctx, sql, args...)
		return int(tag.RowsAffected()), err
	}
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return 0, err
	}
	rows.Close()
	return int(rows.CommandTag().RowsAffected()), rows.Err()
}

func (i *Items[T]) failed(what, of string, err error) error {
	return fmt.Errorf("%s of %s/%s: %w", what, i.collection, shortened(of), pgerr.Explain(err))
}

// checkArgument returns an error for a text that Postgres cannot keep in an index.
func checkArgument(name, text string) error {
	if !fits(text) {
		return fmt.Errorf("argument %s has %d bytes: want 1 to %d, in UTF-8 and without NUL", name, len(text), MaxKey)
	}
	return nil
}

// shortened returns the beginning of a text, for an error.
func shortened(text string) string { return printable(text[:min(len(text), 80)]) }
