package pgdev

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// LocaleVariable, set to a locale of ICU such as en-US, is the Locale of servers that are started without one.
	LocaleVariable = "EDDA_TEST_LOCALE"
	// DefaultsVariable, set to "name=value;name=value", sets the Defaults of servers that are started without
	// Defaults.
	DefaultsVariable = "EDDA_TEST_DEFAULTS"
	// PatienceVariable is the factor of Patience, from 1 to 100, and 5 if it is not set.
	PatienceVariable = "EDDA_TEST_PATIENCE"
)

// Patience returns how long a test waits for an event that takes at most most on an idle machine. If the wait ends,
// the test hangs, and the machine is not only slow.
func Patience(most time.Duration) time.Duration {
	times, err := strconv.Atoi(os.Getenv(PatienceVariable))
	if err != nil || times < 1 || times > 100 {
		times = 5
	}
	return time.Duration(times) * most
}

// Deadline returns the context of a test for as long as it waits for an event: a statement or a function that never
// returns then becomes an error of the test.
func Deadline(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), Patience(20*time.Second))
	t.Cleanup(cancel)
	return ctx
}

// asAsked returns o with the options from the environment.
func (o Options) asAsked() (Options, error) {
	locale, defaults := os.Getenv(LocaleVariable), os.Getenv(DefaultsVariable)
	if o.Locale == "" {
		o.Locale = locale
	}
	if o.Defaults == nil && defaults != "" {
		o.Defaults = map[string]string{}
		for setting := range strings.SplitSeq(defaults, ";") {
			name, value, ok := strings.Cut(setting, "=")
			if !ok {
				return o, fmt.Errorf("%s is %q: want name=value;name=value", DefaultsVariable, defaults)
			}
			o.Defaults[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	if os.Getenv("DATABASE_URL") != "" && !o.Private && (o.Locale != "" || len(o.Defaults) > 0) {
		return o, fmt.Errorf("a locale or defaults are set (%s, %s), and the server of DATABASE_URL is not "+
			"ours to change: unset one or the other", LocaleVariable, DefaultsVariable)
	}
	return o, nil
}

// quoted returns a value for ALTER ROLE … SET. standard_conforming_strings is on where it is used.
func quoted(value string) string { return "'" + strings.ReplaceAll(value, "'", "''") + "'" }

// writeSettings appends our settings, then the caller's, to postgresql.conf: the last line for a name wins.
func writeSettings(h home, port int, o Options) error {
	durable := "off"
	if o.Durable {
		durable = "on"
	}
	settings := map[string]string{
		"listen_addresses":          "127.0.0.1",
		"port":                      strconv.Itoa(port),
		"unix_socket_directories":   h.dir,
		"unix_socket_permissions":   "0700",
		"cluster_name":              h.name(),
		"fsync":                     durable,
		"full_page_writes":          durable,
		"shared_buffers":            "128MB",
		"max_connections":           "200",
		"max_locks_per_transaction": "256", // a schema for every test, all dropped with CASCADE
		"autovacuum_naptime":        "5s",
		"deadlock_timeout":          "1s",
		"search_path":               "public", // the user and the schema are both edda, and "$user" would find it first
		"timezone":                  "UTC",
		"log_line_prefix":           "%m [%p] %a ",
	}
	maps.Copy(settings, o.Settings)

	var conf strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		value := strings.ReplaceAll(settings[name], "'", "''")
		fmt.Fprintf(&conf, "%s = '%s'\n", name, strings.ReplaceAll(value, `\`, `\\`))
	}
	f, err := os.OpenFile(filepath.Join(h.dataDir(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("write the server's settings: %w", err)
	}
	if _, err := f.WriteString("\n# pgdev\n" + conf.String()); err != nil {
		f.Close()
		return fmt.Errorf("write the server's settings: %w", err)
	}
	return f.Close()
}
