package scheduler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/edda-go/edda/internal/base/plan"
	"github.com/edda-go/edda/saga"
)

// Declaration has the manifests and groups of one program.
type Declaration struct {
	Owner     string
	Groups    []Group
	Manifests []Manifest
}

// declarationFile is a Declaration as JSON. The names of its fields must not change.
type declarationFile struct {
	Format    int            `json:"edda_declaration"`
	Owner     string         `json:"owner"`
	Groups    []groupFile    `json:"groups"`
	Manifests []manifestFile `json:"manifests"`
}

const fileFormat = 1

type groupFile struct {
	Name string `json:"name"`
	groupRow
}

type manifestFile struct {
	Name          string          `json:"name"`
	Definition    plan.Definition `json:"definition"`
	Group         string          `json:"group,omitempty"`
	Priority      int             `json:"priority,omitempty"`
	Overlap       bool            `json:"overlap,omitempty"`
	Paused        bool            `json:"paused,omitempty"`
	Retries       int             `json:"retries"`
	RetryDelay    string          `json:"retry_delay"`
	MaxRetryDelay string          `json:"retry_most"`
	Timeout       string          `json:"timeout,omitempty"` // no timeout if it is left out
	Kind          string          `json:"kind"`
	Text          *string         `json:"body,omitempty"`
	Bytes         []byte          `json:"body_base64,omitempty"` // of a body that is not valid UTF-8
}

// MarshalDeclaration writes a declaration as JSON, with its defaults filled in and its messages encoded by codec, so
// that DiffDeclaration and "edda manifest diff" can compare it without the program. A nil codec is saga.JSON. Call it
// in a test or a command of the program, and compare during the deploy, before the program starts. It returns an
// error that lists the faults of the declaration.
func MarshalDeclaration(d Declaration, codec saga.Codec) ([]byte, error) {
	declared, err := newEncoder(codec).declare(d.Owner, d.Groups, d.Manifests)
	if err != nil {
		return nil, fmt.Errorf("write declaration: %w", err)
	}
	file := declarationFile{Format: fileFormat, Owner: d.Owner, Groups: []groupFile{}, Manifests: []manifestFile{}}
	for _, g := range declared.groups {
		file.Groups = append(file.Groups, groupFile{g.Name, g})
	}
	for _, r := range declared.rows {
		file.Manifests = append(file.Manifests, r.file())
	}
	return json.MarshalIndent(file, "", "  ")
}

func (r row) file() manifestFile {
	f := manifestFile{
		Name: r.name, Definition: r.definition, Group: r.group, Priority: r.priority, Overlap: r.overlap,
		Paused:  r.stopped,
		Retries: r.retries, RetryDelay: r.retryDelay.String(), MaxRetryDelay: r.retryMost.String(), Kind: r.kind,
	}
	if r.timeout > 0 {
		f.Timeout = r.timeout.String()
	}
	if text := string(r.body); utf8.ValidString(text) {
		f.Text = &text
	} else {
		f.Bytes = r.body
	}
	return f
}

// DiffDeclaration is Diff for the output of MarshalDeclaration.
func (s *Store) DiffDeclaration(ctx context.Context, file []byte) (Changes, error) {
	d, err := readDeclaration(file)
	if err != nil {
		return Changes{}, fmt.Errorf("read declaration: %w", err)
	}
	return s.compareOnly(ctx, d)
}

// readDeclaration checks little, because MarshalDeclaration has checked the declaration.
func readDeclaration(text []byte) (d declaration, err error) {
	var file declarationFile
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return d, err
	}
	if file.Format != fileFormat {
		return d, fmt.Errorf("edda_declaration is %d, and this release reads %d", file.Format, fileFormat)
	}
	if err := checkOwner(file.Owner); err != nil {
		return d, err
	}
	d = declaration{owner: file.Owner, prune: len(file.Manifests) > 0}
	for _, g := range file.Groups {
		g.groupRow.Name = g.Name
		d.groups = append(d.groups, g.groupRow)
	}
	faults := []error{}
	for _, f := range file.Manifests {
		r, err := f.row()
		if err != nil {
			faults = append(faults, fmt.Errorf("manifest %.140q: %w", f.Name, err))
		}
		d.rows = append(d.rows, r)
	}
	return d, some(faults)
}

func (f manifestFile) row() (r row, err error) {
	r = row{
		name: f.Name, group: f.Group, priority: f.Priority, overlap: f.Overlap,
		stopped: f.Paused,
		retries: f.Retries, kind: f.Kind, body: f.Bytes,
	}
	if f.Text != nil {
		r.body = []byte(*f.Text)
	}
	r.define(f.Definition)
	var delayErr, mostErr, timeoutErr error
	r.retryDelay, delayErr = time.ParseDuration(f.RetryDelay)
	r.retryMost, mostErr = time.ParseDuration(f.MaxRetryDelay)
	if f.Timeout != "" {
		r.timeout, timeoutErr = time.ParseDuration(f.Timeout)
	}
	r.plan, err = f.Definition.Compile()
	return r, errors.Join(plan.CheckName(f.Name), delayErr, mostErr, timeoutErr, err)
}
