package main

import (
	"flag"
	"fmt"
	"os"
)

const root, page = "../..", "../../docs/reference/licences.md"

func main() {
	write := flag.Bool("write", false, "write "+page+", and not print it")
	flag.Parse()
	if err := run(*write); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

func run(write bool) error {
	modules, err := survey()
	if err != nil {
		return err
	}
	text := pageOf(modules)
	if !write {
		_, err = os.Stdout.WriteString(text)
		return err
	}
	return os.WriteFile(page, []byte(text), 0o644)
}
