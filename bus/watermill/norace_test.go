//go:build !race

package watermill_test

const suiteReconnects = true
