package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/edda-go/edda/saga"
)

// InstallQueue creates the queue of an endpoint and subscribes it to kinds, on top of what it is subscribed to. It is
// Endpoint.Install for programs that do not have the endpoint's handlers, such as those that run with the right to
// create tables. It does nothing when all of it was done before.
//
// Errors: the name or a kind is no name; the role may not create tables; the schema is not migrated.
func (b *Bus) InstallQueue(ctx context.Context, endpoint string, kinds ...string) error {
	if err := checkNames(endpoint, kinds); err != nil {
		return err
	}
	e := &Endpoint{bus: b, name: endpoint, handlers: &handlers{subscribed: kinds}}
	return e.Install(ctx)
}

func checkNames(endpoint string, kinds []string) error {
	faults := []error{}
	if err := saga.CheckName(endpoint); err != nil {
		faults = append(faults, fmt.Errorf("install endpoint %.80q: %w", endpoint, err))
	}
	for _, kind := range kinds {
		if err := saga.CheckName(kind); err != nil {
			faults = append(faults, fmt.Errorf("install endpoint %.80q: kind %.80q: %w", endpoint, kind, err))
		}
	}
	return errors.Join(faults...)
}

// CheckQueue finds the queue of an endpoint, and creates it where Options.AutoInstall says so. ErrNotInstalled says
// that there is none and what to do.
func (b *Bus) CheckQueue(ctx context.Context, endpoint string) error {
	e := &Endpoint{bus: b, name: endpoint, handlers: &handlers{}}
	if _, err := e.findQueue(ctx); err != nil {
		return fmt.Errorf("endpoint %.80q: %w", endpoint, err)
	}
	return nil
}
