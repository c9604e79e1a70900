// Package approval waits for the decision of a person: docs/patterns/approval.md.
package approval
