package pgdev

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	code := Main(m)
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func TestSchemasOfOneTestAreDroppedWhenItEnds(t *testing.T) {
	t.Parallel()
	pool := Pool(t)
	var names []string
	t.Run("inner test, with a name that is long: Ünïcode and 'quotes' and more", func(t *testing.T) {
		for range 2 {
			schema := Schema(t)
			names = append(names, schema)
			if _, err := Pool(t).Exec(t.Context(), "CREATE SCHEMA "+schema+" CREATE TABLE a (id int)"); err != nil {
				t.Fatal(err)
			}
		}
	})
	if names[0] == names[1] {
		t.Errorf("two schemas have one name: %s", names[0])
	}
	var left int
	err := pool.QueryRow(t.Context(), "SELECT count(*) FROM pg_namespace WHERE nspname = ANY($1)", names).Scan(&left)
	if err != nil || left != 0 {
		t.Errorf("schemas %v: %d left after the test (%v), want 0", names, left, err)
	}
}

func TestSettingsSuitTests(t *testing.T) {
	if os.Getenv("DATABASE_URL") != "" {
		t.Log("the server is the user's own; its settings are too")
		return
	}
	pool := Pool(t)
	want := map[string]string{"fsync": "off", "full_page_writes": "off", "max_connections": "200",
		"server_encoding": "UTF8", "search_path": "public", "listen_addresses": "127.0.0.1"}
	for name, value := range want {
		var got string
		if err := pool.QueryRow(t.Context(), "SELECT current_setting($1)", name).Scan(&got); err != nil ||
			got != value {
			t.Errorf("%s = %q (%v), want %q", name, got, err, value)
		}
	}
}
