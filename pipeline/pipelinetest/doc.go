// Package pipelinetest makes exchanges from real request bodies for tests of modules, lets conversations grow
// request by request, and contains the conformance tests for modules.
package pipelinetest
