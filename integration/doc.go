// Package integration holds Curfew to its promises from outside: the built binary as a process, spoken to by clients that know nothing
// of it, beside a real Redis and a real RabbitMQ that the tests start themselves on free ports.
//
//	curfew_test.go     starts and stops `curfew serve`; ops_test.go reads its health and metrics
//	rabbitmq_test.go   starts RabbitMQ for comparisons; Redis comes from testenv
//	clients_test.go    amqp091-go, librabbitmq, python3-pika and Node's amqplib, doing the same work
//	deadlines_test.go  every deadline kept, mid-queue, with nobody consuming; redis_test.go the same while Redis fails
//	tools_test.go      the same through amqp-publish; restart_test.go the same through kill -9
//	settle_test.go     ack, lazy expiry and eager fire racing for the same messages; million_test.go a million due within a minute
//	conformance*_test.go  the same question to Curfew and to RabbitMQ, and where they differ the reason; access_test.go, policies_test.go,
//	                   definitions_test.go and management_test.go likewise
//	clients_foreign_test.go  aio-pika, bunny, php-amqplib, the Java client; celery_test.go a Celery application
//	alertmanager_test.go  alerts at a real Alertmanager and Prometheus; users_test.go users over a kill, secrets, TLS
//	crowd_test.go      ten thousand connections, slow handshakes
//	story_test.go      testdata/*.txt played in virtual time through the real client
//	input_test.go      malformed, oversized and wrong input; image_test.go the image
//
// What is missing on the machine fails a test with the command that installs it; `make test` installs it beforehand.
// Linux only: memory is read from /proc, and children end with their parent.
//
// Times. A run compares wall clocks of processes on one machine. "Never early" is checked against the instant just before publishing
// and allows nothing; "late by" is counted from the instant the publisher had its confirm, and is judged by percentile, because the
// machine's scheduler is part of what is measured.
package integration
