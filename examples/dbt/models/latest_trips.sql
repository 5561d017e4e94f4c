{{ config(
    materialized='incremental', incremental_strategy='merge', unique_key='id',
    on_schema_change='append_new_columns'
) }}
select id, city, fare, at {%- if var('with_tax', false) %}, fare * 0.2 as tax {%- endif %}
from {{ ref('trips') }}
{% if is_incremental() %} where at >= (select max(at) from {{ this }}) {% endif %}
