package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/edda-go/edda/internal/test/pgdev"
)

func main() {
	dir, err := find(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(dir)
}

func find(args []string) (string, error) {
	if len(args) != 1 {
		return "", fmt.Errorf("want one argument, a major version such as 17; got %q", args)
	}
	major, err := strconv.Atoi(args[0])
	if err != nil || major <= 0 {
		return "", fmt.Errorf("%q is not a major version such as 17", args[0])
	}
	return pgdev.Binaries(context.Background(), os.Stderr, major)
}
