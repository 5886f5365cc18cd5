// Package sessiontest writes long agent sessions for tests and benchmarks, as the request bodies that a
// coding client sends while its session grows. The same seed and options give the same bytes. A provider
// would accept every body.
package sessiontest
