// Package tutorial has the programs of the tutorial, docs/tutorial, one for each part. Its tests run them as processes.
package tutorial
