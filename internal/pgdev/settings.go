package pgdev

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// writeSettings appends our settings, then the caller's, to postgresql.conf:
// the last line for a name wins.
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
