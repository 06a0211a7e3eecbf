<?php
// An application written for the delayed-message plugin, with php-amqplib. The roles and their lines are those of ../pika/delayed.py.
require_once 'PhpAmqpLib/autoload.php';

use PhpAmqpLib\Connection\AMQPStreamConnection;
use PhpAmqpLib\Exception\AMQPProtocolChannelException;
use PhpAmqpLib\Message\AMQPMessage;
use PhpAmqpLib\Wire\AMQPTable;

function declareAll($connection): void
{
    $channel = $connection->channel();
    foreach (['direct', 'topic', 'fanout', 'headers'] as $type) {
        $channel->exchange_declare("delayed.$type", 'x-delayed-message', false, true, false, false, false, new AMQPTable(['x-delayed-type' => $type]));
        $channel->queue_declare("jobs.$type", false, true, false, false);
        $arguments = $type === 'headers' ? ['x-match' => 'all', 'region' => 'eu'] : [];
        $channel->queue_bind("jobs.$type", "delayed.$type", $type === 'topic' ? 'eu.*' : 'eu.new', false, new AMQPTable($arguments));
    }
}

function publish($connection): void
{
    $channel = $connection->channel();
    $channel->confirm_select();
    while (($line = fgets(STDIN)) !== false) {
        [$type, $id, $key, $region, $delay] = explode(' ', trim($line));
        $headers = ['region' => $region] + ($delay === 'none' ? [] : ['x-delay' => (int) $delay]);
        $message = new AMQPMessage('job', ['message_id' => $id, 'delivery_mode' => 2, 'application_headers' => new AMQPTable($headers)]);
        $before = (int) (microtime(true) * 1e6);
        $channel->basic_publish($message, "delayed.$type", $key);
        $channel->wait_for_pending_acks(30);
        echo "sent $type $id $before\n";
    }
}

function refused($connection): void
{
    foreach ([[], ['x-delayed-type' => 'unheard-of']] as $arguments) {
        try {
            $connection->channel()->exchange_declare('refused', 'x-delayed-message', false, true, false, false, false, new AMQPTable($arguments));
            echo "declared\n";
        } catch (AMQPProtocolChannelException $e) {
            echo $e->amqp_reply_code, ' ', $e->amqp_reply_text, "\n";
        }
    }
}

$url = parse_url($argv[2]);
$connection = new AMQPStreamConnection($url['host'], $url['port'], $url['user'], $url['pass'], substr($url['path'], 1));
['declare' => 'declareAll', 'publish' => 'publish', 'refused' => 'refused'][$argv[1]]($connection);
$connection->close();
