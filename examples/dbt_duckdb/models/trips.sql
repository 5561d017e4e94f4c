{{ config(hudi={'key': 'id', 'type': 'mor'}) }}
select id, city, fare, started from {{ ref('raw_trips') }}
