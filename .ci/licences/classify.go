package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/licenseclassifier/v2/assets"
)

// allowed are the licences that require a notice, but no publication of a program's own code.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// named is a file with a licence.
var named = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)([.\-_].*)?$`)

// notes are files that the classifier does not recognize and a person has read: a part of their text, and the licence.
var notes = map[string]string{}

var known = sync.OnceValues(assets.DefaultClassifier)

var (
	errNone   = errors.New("there is no file with a licence")
	errRefuse = errors.New("a program that links it would owe more than a notice, or its duties are unknown")
)

// classify returns the licences of a module by their SPDX names. It is an error if one is not allowed.
func classify(dir string) (string, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	licences := []string{}
	for _, file := range files {
		if file.IsDir() || !named.MatchString(file.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			return "", err
		}
		all, err := licencesOf(text)
		if err != nil {
			return "", fmt.Errorf("%s: %w", file.Name(), err)
		}
		if len(all) == 0 {
			return "", fmt.Errorf("%s is no licence that the classifier knows: %w", file.Name(), errRefuse)
		}
		licences = append(licences, all...)
	}
	slices.Sort(licences)
	licences = slices.Compact(licences)
	if len(licences) == 0 {
		return "", errNone
	}
	for _, licence := range licences {
		if !slices.Contains(allowed, licence) {
			return "", fmt.Errorf("%s: %w", licence, errRefuse)
		}
	}
	return strings.Join(licences, ", "), nil
}

// licencesOf returns the licences in a text.
func licencesOf(text []byte) (licences []string, err error) {
	for part, licence := range notes {
		if strings.Contains(string(text), part) {
			return []string{licence}, nil
		}
	}
	c, err := known()
	if err != nil {
		return nil, err
	}
	for _, match := range c.Match(text).Matches {
		if match.MatchType == "License" {
			licences = append(licences, match.Name)
		}
	}
	return licences, nil
}
