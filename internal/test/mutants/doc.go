// Command mutants removes guards of the engine on purpose, one at a time, and checks whether the tests notice.
//
//	go run ./internal/test/mutants                 all of them
//	go run ./internal/test/mutants -list           the guard that each removes, and the promise it breaks
//	go run ./internal/test/mutants -run save -v    some of them, with the output of their tests
//	go run ./internal/test/mutants -record internal/test/mutants/record.txt
//	                                          all, except those in the record with the same code and tests
//	         -page docs/internals/mutants.md  and write the result into the page
//	go run ./internal/test/mutants -random 300 -seed 187ea1fb
//	                                          mutants drawn at random, in place of the catalogue; with -record and
//	                                          -page, and with -list, as above
//	         -in '^internal/store/' -own      only of some packages, and only with the tests of their own package
//
// # Promise
//
// It exits with 0 only if every mutant was killed: the tests that the mutant names pass on the unchanged engine, and
// fail on the engine without the guard. Its last line is "mutants=N killed=N unfinished=N": unfinished counts the
// killed mutants that ended the process of their test. It writes nothing into the work tree but the page and the
// record: the changed files are in a temporary directory, and the go command reads them in place of the real ones. An
// interrupted run keeps its results in the record, and the next run tries the other mutants.
//
// # A mutant
//
// It is a paragraph in catalog/*.txt, one file for each theme:
//
//	mutant save-compares-no-version
//	guards Of two batches that loaded one version of an instance, one commits.
//	test   ./persistence TestOptimistic/UpdateRaceHasOneWinner
//	file   persistence/statements.sql
//	-        WHERE s.ctid = u.tid AND s.iid = u.iid AND s.version = u.version
//	+        WHERE s.ctid = u.tid AND s.iid = u.iid
//
// Lines that begin with "-" are replaced by those that begin with "+"; lines that begin with a blank are context and
// stay. Together the old lines must occur exactly once in the file: if a guard moves, its mutant has to be changed,
// and the run names it. A mutant may change several files, and name several tests of one package; each of them has to
// fail. "rows S0-7 S1-7" lists the rows of docs/internals/conformance.md that it breaks. "tags bouncer" lists the
// build tags that the tests need.
//
// # Trials
//
// Most mutants change only bodies of functions, and files embedded in a variable. The command compiles the tests once
// with all of these mutants in the engine: a changed function begins with a condition for each of its mutants, and
// the variable EDDA_MUTANT in the environment of a process names the mutant that is on. A trial then runs only the
// tests that its mutant names. Before that, the tests must pass in the same programs while no mutant is on.
//
// Other mutants are compiled alone, which takes 20 seconds of processor time: a mutant that changes a constant, a
// declaration, or a function that calls recover itself; a mutant that does not compile; and a mutant whose tests read
// the code. A mutant that was not killed is tried a second time, compiled alone, and the second trial counts: a test
// may have started a program that does not get the variable.
//
// # States
//
//   - killed: the tests that it names failed, or their process died of a panic.
//   - survived: they passed. No test protects the guard.
//   - partly: some of them failed. The others do not protect the guard.
//   - hung: the tests did not end in time. A test bounds its waits with pgdev.Patience, so that it fails instead.
//   - broken: it does not compile, or a test that it does not name failed. That proves nothing.
//
// Every state except killed makes the run fail.
//
// A result holds only for one version of Postgres: delete the record before a run on a different one.
//
// # Random mutants
//
// A draw takes lines of the product at random, each with the same chance, and makes one change of each line: goEdits
// and sqlEdits list the kinds. The mutant must compile. The same seed draws the same mutants from the same code. The
// name of a mutant depends on the lines that change, and not on their place.
//
// The command runs each test of a package once by itself, with coverage. It keeps the result in the user's cache until
// the code or the tests change. A mutant is tried with the tests of its own package that reach it, then with the tests
// of other packages that reach it, the fastest package first. It is killed if a test fails, fails again, and passes
// without the mutant. It survives if all these tests pass, or if no test reaches it. A mutant that hangs or does not
// compile counts for neither. The last line is "random=N killed=N own=N survived=N argued=N neither=N": own counts the
// mutants that the tests of their own packages killed.
//
// The record keeps a killed mutant for its seed, and any other result for its commit. So an interrupted run continues,
// and a run after a commit of new tests tries the survivors again. A line of arguments.txt names a survivor that no
// test can kill, and the reason. A draw leaves out tests, examples, generated files, log texts, methods that only
// describe a value, and the SQL of migrations.
//
// # Failures
//
// A mutant that no longer applies, or names a test that does not exist or fails on the unchanged engine, ends the run
// before the first mutant is tried. The package's own tests check all of that but the last, without a database. Tests
// of the unchanged engine that fail beside the others run again by themselves, as they do with a mutant.
package main
