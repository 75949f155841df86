module github.com/oncepay/oncepay/test/clients

go 1.26.0

replace github.com/oncepay/oncepay => ../..

require (
	github.com/oncepay/oncepay v0.0.0-00010101000000-000000000000
	github.com/pb33f/libopenapi v0.42.5
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
)

require (
	github.com/bahlo/generic-list-go v0.2.0 // indirect
	github.com/buger/jsonparser v1.1.2 // indirect
	github.com/go-json-experiment/json v1.27.2 // indirect
	github.com/pb33f/go-yaml v0.1.1 // indirect
	github.com/pb33f/jsonpath v0.8.5 // indirect
	github.com/pb33f/ordered-map/v2 v2.3.2 // indirect
	golang.org/x/text v0.44.0 // indirect
)
