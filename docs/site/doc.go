// Command site builds the documentation site from README.md and docs, as they are.
//
//	go run . -out FOLDER                 the files of the work tree, under the label of git describe
//	go run . -out FOLDER -version v0.2.0 the files of a tag or a commit, with the pages of this program
//	go run . -out FOLDER -serve :8080    the same, and serves them; it builds again when a file has changed
//
// make docs does the first, and ARGS has further flags.
//
// # Promise
//
// The tables of docs/README.md are the navigation: a page that is in a table is on the site, in its section and at its
// place. A page that is an index (a README.md with a table of its own) has the pages of its table below it. Each page
// of FOLDER/VERSION has a Markdown file beside it, and llms.txt lists those. FOLDER itself has versions.json, which the
// menu of versions reads, and latest, which redirects to the newest release.
//
// Pages need no other server than one of files, load nothing from a foreign origin, and are whole without JavaScript,
// except search, copying, and the colours that a visitor chose before. All links between pages are relative, so FOLDER
// may lie anywhere, also on a disk.
//
// # Failures
//
// Every link of a page that leads to no file, and every page that no table lists, is a fault. All of them are printed,
// nothing is written, and the program exits with 1.
package main
