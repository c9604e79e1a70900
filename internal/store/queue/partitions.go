package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/edda-go/edda/internal/base/pgerr"
	"github.com/jackc/pgx/v5"
)

// PartitionName returns the name of the endpoint that handles one partition of an endpoint.
func PartitionName(endpoint string, n int) string { return endpoint + ".p" + strconv.Itoa(n) }

// PartitionNumber returns the number of partitions that is stored for an endpoint, or "".
func (r *Router) PartitionNumber(ctx context.Context, endpoint string) (stored string, err error) {
	err = r.pool.QueryRow(ctx, r.sql.Get("partition_number"), endpoint).Scan(&stored)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return "", fmt.Errorf("read the number of partitions: %w", pgerr.Explain(err))
	}
	return stored, nil
}

// Partitions returns the queues of an endpoint's partitions from the number first on, in no order.
func (t *Routes) Partitions(endpoint string, first int) (found []*Queue) {
	if t.Endpoints[endpoint] == nil {
		return nil
	}
	for name, q := range t.Endpoints {
		text, ok := strings.CutPrefix(name, endpoint+".p")
		if n, err := strconv.Atoi(text); ok && err == nil && n >= first && name == PartitionName(endpoint, n) {
			found = append(found, q)
		}
	}
	return found
}

// base returns the endpoint whose partition the given endpoint handles; ok is false if it handles no partition.
func (t *Routes) base(endpoint string) (base string, ok bool) {
	at := strings.LastIndex(endpoint, ".p")
	if at < 0 || t.Endpoints[endpoint[:at]] == nil {
		return "", false
	}
	n, err := strconv.Atoi(endpoint[at+len(".p"):])
	return endpoint[:at], err == nil && endpoint == PartitionName(endpoint[:at], n)
}
