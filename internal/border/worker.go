package main

import "context"

const workerVariable = "EDDA_BORDER_WORKER"

func work(context.Context, string) error     { return nil }
func lag(context.Context, settings) error    { return nil }
func faults(context.Context, settings) error { return nil }
