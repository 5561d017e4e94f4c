{{ config(materialized='incremental', incremental_strategy='append') }}
select id, city, fare, at from {{ ref('trips') }}
{% if is_incremental() %} where at > (select max(at) from {{ this }}) {% endif %}
