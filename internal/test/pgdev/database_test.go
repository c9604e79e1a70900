package pgdev

import "testing"

func TestAnICUDatabaseSortsAsPeopleDo(t *testing.T) {
	t.Parallel()
	const sorted = "SELECT string_agg(key, '' ORDER BY key) FROM unnest('{b,B,a,A}'::text[]) u(key)"
	if got := queryString(t, ICUDSN(t), sorted); got != "aAbB" {
		t.Errorf("the ICU database sorts %q, want aAbB", got)
	}
	if got := queryString(t, ICUDSN(t), "SELECT datlocprovider::text FROM pg_database WHERE datname = "+
		"current_database()"); got != "i" {
		t.Errorf("the collation provider is %q, want i, which is ICU", got)
	}
}
