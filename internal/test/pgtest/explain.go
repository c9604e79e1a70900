package pgtest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Scan is one node of a plan that reads a table.
type Scan struct {
	Table   string
	Node    string // "Index Scan", "Tid Scan", "Seq Scan", …
	Index   string // "" if no index is used
	Loops   int
	Rows    int // rows it returned, over all loops
	Removed int // rows it read and threw away, over all loops
}

func (s Scan) String() string {
	return fmt.Sprintf("%s on %s %s: %d loops, %d rows, %d removed", s.Node, s.Table, s.Index, s.Loops, s.Rows,
		s.Removed)
}

// Explain runs the prepared statement name with args and returns how the plan reached the rows of tables. Call it in
// a transaction that is rolled back, since the statement takes effect. Each arg is the text of a Postgres literal,
// '{1,2}' for an array: EXECUTE takes no parameters.
func Explain(t testing.TB, tx pgx.Tx, name string, args ...string) []Scan {
	t.Helper()
	sql, values := execute("EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON)", name, args)
	var text []byte
	if _, err := tx.Exec(t.Context(), asLiterals); err != nil {
		t.Fatal(err)
	}
	if err := tx.QueryRow(t.Context(), sql, values...).Scan(&text); err != nil {
		t.Fatalf("explain %s: %v", name, err)
	}
	var plans []struct{ Plan node }
	if err := json.Unmarshal(text, &plans); err != nil {
		t.Fatalf("explain %s: %v\n%s", name, err, text)
	}
	var scans []Scan
	for _, p := range plans {
		scans = p.Plan.scans(scans)
	}
	return scans
}

// asLiterals allows pgx to write arguments into the text of a statement, which it does only in such a session.
const asLiterals = "SET LOCAL standard_conforming_strings = on"

// execute returns the statement that runs a prepared one.
func execute(explain, name string, args []string) (sql string, values []any) {
	values = []any{pgx.QueryExecModeSimpleProtocol}
	var marks []string
	for n, arg := range args {
		marks = append(marks, fmt.Sprintf("$%d", n+1))
		values = append(values, arg)
	}
	sql = explain + " EXECUTE " + pgx.Identifier{name}.Sanitize()
	if len(marks) > 0 {
		sql += " (" + strings.Join(marks, ", ") + ")"
	}
	return sql, values
}

// node holds the fields that we need of a plan in JSON.
type node struct {
	NodeType     string  `json:"Node Type"`
	RelationName string  `json:"Relation Name"`
	IndexName    string  `json:"Index Name"`
	Rows         float64 `json:"Actual Rows"`
	Loops        float64 `json:"Actual Loops"`
	Removed      float64 `json:"Rows Removed by Filter"`
	Rechecked    float64 `json:"Rows Removed by Index Recheck"`
	Plans        []node
}

func (n node) scans(found []Scan) []Scan {
	reads := strings.HasSuffix(n.NodeType, "Scan")
	if reads && (n.RelationName != "" || n.IndexName != "") {
		found = append(found, Scan{
			Table: n.RelationName, Node: n.NodeType, Index: n.IndexName, Loops: int(n.Loops),
			Rows: int(n.Rows*n.Loops + 0.5), Removed: int((n.Removed+n.Rechecked)*n.Loops + 0.5),
		})
	}
	for _, child := range n.Plans {
		found = child.scans(found)
	}
	return found
}
