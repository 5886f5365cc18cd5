package tenantsdb

// ProxySettings holds the workspace settings that the proxy reads and learns. ProviderKeys and ModelWindows
// have methods of the same name, so they are embedded under other names.
type ProxySettings struct {
	Data
	Pipelines
	providerKeys
	modelWindows
}

type (
	providerKeys = ProviderKeys
	modelWindows = ModelWindows
)
