package recorder

import (
	"net/http"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/tenants"
)

// OwnCall returns the job that records a call of a model which Palimpsest made itself for a workspace, at
// the workspace's cost. It fills in what all of them have in common.
func OwnCall(call tenants.Exchange) Job {
	call.ID, call.Client = uuid.Must(uuid.NewV7()), "palimpsest"
	call.Status, call.Attempts = http.StatusOK, 1
	call.Compression = string(pipeline.None)
	call.Report = (&pipeline.Report{Compression: pipeline.None}).JSON()
	call.NetMicroUSD = -call.CostMicroUSD
	return Job{Exchange: &call}
}
