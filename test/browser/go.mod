module github.com/oncepay/oncepay/test/browser

go 1.26.0

replace github.com/oncepay/oncepay => ../..

require (
	github.com/chromedp/cdproto v0.160.1
	github.com/chromedp/chromedp v0.23.1
	github.com/oncepay/oncepay v0.0.0-00010101000000-000000000000
)

require github.com/go-json-experiment/json v1.27.2 // indirect
