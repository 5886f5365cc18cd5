// Package apibench measures the proxy's overhead per exchange. It sends the same request to a provider
// directly, through the smallest proxy that could do the job (the floor), and through the real program, in
// turns within one run. The provider is a fast double in the measuring process. All addresses are loopback,
// and every run sends a fixed number of requests.
package apibench
