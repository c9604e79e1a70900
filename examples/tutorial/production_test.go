package tutorial_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/edda-go/edda/eddatest"
)

// Part 6: the owner sets up, and the shop runs with a role that may create nothing.
func TestProductionRunsWithARoleThatCreatesNothing(t *testing.T) {
	t.Parallel()
	owner, runtime, reader, as := roles(t)
	program := build(t, "shop")
	runs := func(role string, arguments ...string) *process {
		return start(t, program, []string{"DATABASE_URL=" + as(role), "SHOP_RUNTIME=" + runtime,
			"SHOP_READER=" + reader, "SHOP_PASSWORD=fjalar", "SHOP_LISTEN=127.0.0.1:0",
			"SHOP_OPERATORS=127.0.0.1:0"}, arguments...)
	}
	start(t, program, []string{"DATABASE_URL="}).fails("DATABASE_URL is not set")
	start(t, program, []string{"DATABASE_URL=" + as(owner), "SHOP_RUNTIME="}, "setup").fails("SHOP_RUNTIME is not set")
	runs(owner, "setup").ends()
	runs(runtime, "setup").fails("set up as " + runtime + ", which has to own the schema: ")
	if _, err := open(t, as(runtime)).Exec(t.Context(), `CREATE TABLE edda.mine ()`); err == nil {
		t.Error("the runtime creates a table")
	}
	if _, err := open(t, as(reader)).Exec(t.Context(), `SELECT FROM edda.saga`); err != nil {
		t.Errorf("the reader does not read: %v", err)
	}
	if _, err := open(t, as(reader)).Exec(t.Context(), `DELETE FROM edda.saga`); err == nil {
		t.Error("the reader deletes")
	}
	shop := runs(runtime)
	addresses := map[string]string{}
	for len(addresses) < 2 {
		_, about, _ := strings.Cut(shop.says(": http://"), "for ")
		name, address, _ := strings.Cut(about, ": ")
		addresses[name] = address
	}
	runs(owner, "setup").ends() // at each deploy, also while the shop runs
	order := strings.NewReader(`{"order": "7", "cents": 1990}`)
	ask(t, http.MethodPost, addresses["customers"]+"/orders", "", order).wants(t, http.StatusAccepted, "")
	shop.says("order 7: shipped")
	operators := addresses["operators"]
	ask(t, http.MethodGet, operators+"/health/ready", "", nil).wants(t, http.StatusOK, `"state":"running"`)
	ask(t, http.MethodGet, operators+"/metrics", "", nil).wants(t, http.StatusOK,
		`edda_messages_handled_total{endpoint="orders",kind="order.place",saga="order"} 1`)
	ask(t, http.MethodGet, operators+"/edda/", "", nil).wants(t, http.StatusUnauthorized, "")
	ask(t, http.MethodGet, operators+"/edda/sagas/order", "fjalar", nil).wants(t, http.StatusOK, "order")
	ask(t, http.MethodGet, addresses["customers"]+"/edda/", "fjalar", nil).wants(t, http.StatusNotFound, "")
	shop.stops(syscall.SIGTERM)
}

// Part 6: the program for the administrator makes an owner who can set up, and a runtime that may not.
func TestAdministratorMakesTheRoles(t *testing.T) {
	t.Parallel()
	admin := open(t, eddatest.DSN(t))
	server := admin.Config().ConnConfig
	as := func(role, password string) string {
		return fmt.Sprintf("host=%s port=%d dbname=shop user=%s password=%s", server.Host, server.Port, role, password)
	}
	t.Cleanup(func() {
		for _, sql := range []string{`DROP DATABASE shop`, `DROP ROLE shop_owner`, `DROP ROLE shop_runtime`} {
			if _, err := admin.Exec(context.Background(), sql); err != nil {
				t.Error(err)
			}
		}
	})
	start(t, build(t, "shop/roles"), []string{"DATABASE_URL=" + admin.Config().ConnString()}).ends()
	start(t, build(t, "shop"), []string{"DATABASE_URL=" + as("shop_owner", "galar"), "SHOP_RUNTIME=shop_runtime"},
		"setup").ends()
	runtime := open(t, as("shop_runtime", "fjalar"))
	defer runtime.Close() // before its database goes
	if _, err := runtime.Exec(t.Context(), `SELECT FROM edda.saga`); err != nil {
		t.Errorf("the runtime does not read: %v", err)
	}
	for _, sql := range []string{`CREATE TABLE edda.mine ()`, `CREATE SCHEMA mine`} {
		if _, err := runtime.Exec(t.Context(), sql); err == nil {
			t.Errorf("the runtime does %s", sql)
		}
	}
}

// roles makes an owner of an empty schema and two roles without any right, and returns how they connect.
func roles(t *testing.T) (owner, runtime, reader string, as func(role string) string) {
	t.Helper()
	admin := open(t, eddatest.DSN(t))
	server := admin.Config().ConnConfig
	owner, runtime, reader = server.Database+"_owner", server.Database+"_runtime", server.Database+"_reader"
	for _, sql := range []string{
		fmt.Sprintf(`CREATE ROLE %q LOGIN PASSWORD 'galar'`, owner),
		fmt.Sprintf(`CREATE ROLE %q LOGIN PASSWORD 'galar'`, runtime),
		fmt.Sprintf(`CREATE ROLE %q LOGIN PASSWORD 'galar'`, reader),
		fmt.Sprintf(`REVOKE ALL ON DATABASE %q FROM PUBLIC`, server.Database),
		fmt.Sprintf(`GRANT CONNECT ON DATABASE %q TO %q, %q, %q`, server.Database, owner, runtime, reader),
		`REVOKE ALL ON SCHEMA public FROM PUBLIC`,
		fmt.Sprintf(`CREATE SCHEMA edda AUTHORIZATION %q`, owner),
	} {
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	t.Cleanup(func() {
		for _, role := range []string{owner, runtime, reader} {
			if _, err := admin.Exec(context.Background(), fmt.Sprintf(`DROP OWNED BY %q CASCADE; DROP ROLE %q`, role,
				role)); err != nil {
				t.Error(err)
			}
		}
	})
	return owner, runtime, reader, func(role string) string {
		return fmt.Sprintf("host=%s port=%d dbname=%s user=%s password=galar", server.Host, server.Port,
			server.Database, role)
	}
}

// answer is what a web server has answered.
type answer struct {
	to     string
	status int
	body   string
}

func ask(t *testing.T, method, url, password string, body io.Reader) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	if password != "" {
		r.SetBasicAuth("ann", password)
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{to: method + " " + url, status: got.StatusCode, body: string(text)}
}

func (a answer) wants(t *testing.T, status int, text string) {
	t.Helper()
	if a.status != status || !strings.Contains(a.body, text) {
		t.Errorf("%s: %d, want %d and %q in\n%s", a.to, a.status, status, text, a.body)
	}
}
