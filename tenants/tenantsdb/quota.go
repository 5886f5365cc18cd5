package tenantsdb

import (
	"encoding/json"

	"palimpsest/tenants"
)

// withQuota returns a value as a JSON object with the members of a quota, without limits that are 0.
func withQuota(value any, quota tenants.Quota) ([]byte, error) {
	var members map[string]json.RawMessage
	encoded, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(encoded, &members)
	}
	if err != nil {
		return nil, err
	}
	numbers := map[string]any{}
	for _, limit := range tenants.QuotaLimits() {
		if amount := limit.Of(quota); amount > 0 {
			numbers[limit.Stored] = amount
		}
	}
	for name, member := range members {
		numbers[name] = member
	}
	return json.Marshal(numbers)
}

// readWithQuota reverses withQuota: it reads an object into a value and returns the quota.
func readWithQuota(object []byte, value any) (quota tenants.Quota, err error) {
	var members map[string]json.RawMessage
	if err = json.Unmarshal(object, value); err == nil {
		err = json.Unmarshal(object, &members)
	}
	for _, limit := range tenants.QuotaLimits() {
		if member, is := members[limit.Stored]; is && err == nil {
			var amount int64
			err = json.Unmarshal(member, &amount)
			limit.Set(&quota, amount)
		}
	}
	return quota, err
}
