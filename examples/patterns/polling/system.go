package polling

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/edda-go/edda/bus"
	"github.com/edda-go/edda/saga"
)

// page handler

// System is the other system.
type System struct {
	Client *http.Client // with a Timeout
	URL    string
}

// Look is a handler for bus.Handle. The policy of its endpoint decides when to retry after an error.
func (s System) Look(ctx *bus.Context, m Look) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/exports/"+url.PathEscape(m.Name), nil)
	if err != nil {
		return saga.Permanent(err)
	}
	response, err := s.Client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("look at the export %s: %s", m.Name, response.Status)
	}
	var progress Progress
	if err := json.NewDecoder(response.Body).Decode(&progress); err != nil {
		return fmt.Errorf("look at the export %s: %w", m.Name, err)
	}
	ctx.Reply(progress)
	return nil
}

// end
