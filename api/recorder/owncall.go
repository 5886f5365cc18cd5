package recorder

import (
	"net/http"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/tenants"
)

// OwnCall returns the job for a model call that Palimpsest made itself, at a workspace's cost. It fills in
// the fields that all such calls have in common.
func OwnCall(call tenants.Exchange) Job {
	call.ID, call.Client = uuid.Must(uuid.NewV7()), "palimpsest"
	call.Status, call.Attempts = http.StatusOK, 1
	call.Compression = string(pipeline.None)
	call.Report = (&pipeline.Report{Compression: pipeline.None}).JSON()
	call.NetMicroUSD = -call.CostMicroUSD
	return Job{Exchange: &call}
}
