{{ config(materialized='table', tblproperties={'type': 'mor'}) }}
select id, city, fare, at from {{ ref('raw_trips') }}
